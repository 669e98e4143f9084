CREATE TABLE ticket (id int PRIMARY KEY, done boolean NOT NULL);
CREATE TABLE item (id int PRIMARY KEY, ticket int NOT NULL REFERENCES ticket, done boolean NOT NULL);
CREATE INDEX ON item (ticket);
INSERT INTO ticket SELECT g, false FROM generate_series(1, 3) g;
INSERT INTO item SELECT g, (g + 1) / 2, false FROM generate_series(1, 6) g;
