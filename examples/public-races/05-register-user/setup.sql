CREATE TABLE users (id bigserial PRIMARY KEY, name text NOT NULL);
INSERT INTO users (name) SELECT 'u' || g FROM generate_series(1, 3) g;
