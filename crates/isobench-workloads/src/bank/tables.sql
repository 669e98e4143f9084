DROP TABLE IF EXISTS accounts;
CREATE TABLE accounts (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    balance bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO accounts (id, version, balance) SELECT id, 0, :balance FROM generate_series(1, :accounts) AS numbers(id);
