CREATE TABLE driver (id int PRIMARY KEY, stars numeric NOT NULL);
CREATE TABLE rating (id bigserial PRIMARY KEY, driver int NOT NULL, stars int NOT NULL);
CREATE INDEX ON rating (driver);
INSERT INTO driver SELECT g, 3 FROM generate_series(1, 2) g;
INSERT INTO rating (driver, stars) SELECT g, 3 FROM generate_series(1, 2) g;
