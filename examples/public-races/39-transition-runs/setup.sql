CREATE TABLE run (id int PRIMARY KEY, queued int NOT NULL);
INSERT INTO run SELECT g, 0 FROM generate_series(1, 4) g;
