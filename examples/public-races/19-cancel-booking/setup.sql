CREATE TABLE stock (id int PRIMARY KEY, booked int NOT NULL);
CREATE TABLE booking (id int PRIMARY KEY, stock int NOT NULL REFERENCES stock, quantity int NOT NULL, cancelled boolean NOT NULL);
INSERT INTO stock VALUES (1, 8);
INSERT INTO booking SELECT g, 1, 2, false FROM generate_series(1, 4) g;
