CREATE TABLE aggregate (id int PRIMARY KEY, version int NOT NULL, state int NOT NULL);
INSERT INTO aggregate SELECT g, 1, 0 FROM generate_series(1, 3) g;
