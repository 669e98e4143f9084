CREATE TABLE refresh_token (hash int PRIMARY KEY, user_id int NOT NULL);
INSERT INTO refresh_token SELECT g, g FROM generate_series(1, 6) g;
