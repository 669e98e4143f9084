CREATE TABLE users (id int PRIMARY KEY, violations int NOT NULL, blocked boolean NOT NULL);
CREATE TABLE moderation_log (id bigserial PRIMARY KEY, user_id int NOT NULL);
INSERT INTO users SELECT g, 0, false FROM generate_series(1, 3) g;
