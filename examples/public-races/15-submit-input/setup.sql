CREATE TABLE runs (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE run_inputs (id bigserial PRIMARY KEY, run_id int NOT NULL REFERENCES runs, kind text NOT NULL, body text NOT NULL);
CREATE INDEX ON run_inputs (run_id, kind);
INSERT INTO runs SELECT g, 'r' FROM generate_series(1, 3) g;
INSERT INTO run_inputs (run_id, kind, body) SELECT g, 'revise', 'x' FROM generate_series(1, 3) g, generate_series(1, 2);
