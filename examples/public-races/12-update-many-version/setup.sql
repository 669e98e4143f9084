CREATE TABLE seat (id int PRIMARY KEY, holder int NOT NULL, version int NOT NULL);
INSERT INTO seat SELECT g, 0, 0 FROM generate_series(1, 4) g;
