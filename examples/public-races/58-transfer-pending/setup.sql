CREATE TABLE balance (wallet int PRIMARY KEY, amount int NOT NULL);
CREATE TABLE pending (id bigserial PRIMARY KEY, wallet int NOT NULL REFERENCES balance, amount int NOT NULL);
CREATE INDEX ON pending (wallet);
INSERT INTO balance SELECT g, 100 FROM generate_series(1, 3) g;
