CREATE TABLE job (id int PRIMARY KEY, entry int NOT NULL, status text NOT NULL, slot int);
CREATE INDEX ON job (entry, status);
INSERT INTO job SELECT g, 1 + g % 2, 'queued', NULL FROM generate_series(1, 12) g;
