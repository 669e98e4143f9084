CREATE TABLE job (id int PRIMARY KEY, entry int NOT NULL, status text NOT NULL, slot int);
CREATE INDEX ON job (entry, status);
CREATE UNIQUE INDEX one_per_slot ON job (entry, slot) WHERE status = 'picked';
INSERT INTO job SELECT g, 1 + g % 2, 'queued', NULL FROM generate_series(1, 12) g;
