CREATE TABLE users (id bigserial PRIMARY KEY, username int NOT NULL, deleted_at int NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX ON users (username, deleted_at);
INSERT INTO users (username, deleted_at) VALUES (1, 0), (2, 17), (3, 18);
