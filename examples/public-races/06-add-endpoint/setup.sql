CREATE TABLE users (id int PRIMARY KEY);
CREATE TABLE endpoints (id bigserial PRIMARY KEY, user_id int NOT NULL REFERENCES users, url text NOT NULL);
CREATE INDEX ON endpoints (user_id);
INSERT INTO users SELECT g FROM generate_series(1, 3) g;
INSERT INTO endpoints (user_id, url) SELECT g, 'a' FROM generate_series(1, 3) g;
