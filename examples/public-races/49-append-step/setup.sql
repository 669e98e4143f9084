CREATE TABLE execution (id int PRIMARY KEY, status text NOT NULL, steps int NOT NULL, trace int[] NOT NULL);
INSERT INTO execution SELECT g, 'running', 0, '{}' FROM generate_series(1, 3) g;
