CREATE TABLE cert (id int PRIMARY KEY, created int NOT NULL);
CREATE TABLE used (cert int NOT NULL);
INSERT INTO cert SELECT g, g FROM generate_series(1, 20) g;
