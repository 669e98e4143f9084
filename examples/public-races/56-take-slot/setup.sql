CREATE TABLE semaphore (worker int PRIMARY KEY, slots int NOT NULL);
INSERT INTO semaphore SELECT g, 10 FROM generate_series(1, 2) g;
