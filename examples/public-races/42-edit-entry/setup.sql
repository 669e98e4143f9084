CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE entry (id int PRIMARY KEY, account int NOT NULL REFERENCES account, amount int NOT NULL);
INSERT INTO account VALUES (1, 40);
INSERT INTO entry SELECT g, 1, 10 FROM generate_series(1, 4) g;
