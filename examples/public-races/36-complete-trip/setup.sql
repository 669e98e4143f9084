CREATE TABLE wallet (driver int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, driver int NOT NULL REFERENCES wallet, price int NOT NULL, status text NOT NULL);
INSERT INTO wallet SELECT g, 0 FROM generate_series(1, 2) g;
INSERT INTO orders SELECT g, 1 + g % 2, 50, 'in_transit' FROM generate_series(1, 4) g;
