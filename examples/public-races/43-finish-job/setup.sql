CREATE TABLE job (id int PRIMARY KEY, running int NOT NULL, claims int NOT NULL, finished_by int);
INSERT INTO job SELECT g, 0, 0, NULL FROM generate_series(1, 2) g;
