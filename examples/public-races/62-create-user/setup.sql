CREATE TABLE users (id bigserial PRIMARY KEY, username int NOT NULL, deleted_at int);
CREATE INDEX ON users (username);
INSERT INTO users (username, deleted_at) VALUES (1, NULL), (2, 17), (3, 18);
