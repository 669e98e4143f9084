CREATE TABLE job (id int PRIMARY KEY, lock_key int NOT NULL, doing boolean NOT NULL);
CREATE INDEX ON job (lock_key);
CREATE UNIQUE INDEX one_per_lock ON job (lock_key) WHERE doing;
INSERT INTO job SELECT g, (g - 1) / 5, false FROM generate_series(1, 20) g;
