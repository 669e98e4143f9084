CREATE TABLE job (id int PRIMARY KEY, status text NOT NULL, attempts int NOT NULL);
CREATE TABLE performed (id bigserial PRIMARY KEY, job int NOT NULL);
INSERT INTO job SELECT g, 'pending', 0 FROM generate_series(1, 4) g;
