CREATE TABLE account (id int PRIMARY KEY, admin boolean NOT NULL);
INSERT INTO account SELECT g, g <= 2 FROM generate_series(1, 4) g;
