CREATE TABLE revision (id bigserial PRIMARY KEY, item int NOT NULL, number int NOT NULL);
CREATE INDEX ON revision (item, number);
INSERT INTO revision (item, number) SELECT g, 1 FROM generate_series(1, 3) g;
