CREATE TABLE expert (id int PRIMARY KEY, is_default boolean NOT NULL);
INSERT INTO expert SELECT g, g = 1 FROM generate_series(1, 4) g;
