CREATE TABLE job (id int PRIMARY KEY, status text NOT NULL, created int NOT NULL);
CREATE TABLE run (id bigserial PRIMARY KEY, job int NOT NULL);
INSERT INTO job SELECT g, 'pending', g FROM generate_series(1, 20) g;
