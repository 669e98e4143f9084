CREATE TABLE balance (miner int PRIMARY KEY, amount int NOT NULL);
CREATE TABLE lock_ledger (id int PRIMARY KEY, miner int NOT NULL REFERENCES balance, amount int NOT NULL, status text NOT NULL);
INSERT INTO balance SELECT g, 0 FROM generate_series(1, 2) g;
INSERT INTO lock_ledger SELECT g, 1 + g % 2, 10, 'locked' FROM generate_series(1, 4) g;
