CREATE TABLE wallet (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO wallet SELECT g, 100 FROM generate_series(1, 3) g;
