CREATE TABLE sessions (id int PRIMARY KEY, context int NOT NULL, ready int NOT NULL);
INSERT INTO sessions SELECT g, 0, 0 FROM generate_series(1, 3) g;
