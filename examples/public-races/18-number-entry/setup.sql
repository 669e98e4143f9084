CREATE TABLE journal (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE entry (id bigserial PRIMARY KEY, journal int NOT NULL REFERENCES journal, number int NOT NULL);
CREATE INDEX ON entry (journal, number);
INSERT INTO journal SELECT g, 'j' FROM generate_series(1, 2) g;
INSERT INTO entry (journal, number) SELECT g, 1 FROM generate_series(1, 2) g;
