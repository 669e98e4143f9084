CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE reservation (id bigserial PRIMARY KEY, account int NOT NULL REFERENCES account, amount int NOT NULL);
INSERT INTO account SELECT g, 100 FROM generate_series(1, 3) g;
