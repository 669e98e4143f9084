CREATE TABLE users (id int PRIMARY KEY, tenant int NOT NULL, role text NOT NULL);
CREATE INDEX ON users (tenant);
INSERT INTO users SELECT g, (g + 1) / 2, 'admin' FROM generate_series(1, 4) g;
