DROP TABLE IF EXISTS account;
CREATE TABLE account (name varchar(32) PRIMARY KEY, customer bigint NOT NULL UNIQUE);
INSERT INTO account (name, customer)
    SELECT 'customer ' || CAST(id AS varchar(20)), id FROM generate_series(1, :customers) AS numbers(id);
DROP TABLE IF EXISTS saving;
CREATE TABLE saving (
    customer bigint PRIMARY KEY,
    balance bigint NOT NULL,
    -- The sum of deposits minus the sum of withdrawals.
    inflow bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 50)
;
INSERT INTO saving (customer, balance, inflow, version) SELECT id, :opening, 0, 0 FROM generate_series(1, :customers) AS numbers(id);
DROP TABLE IF EXISTS checking;
CREATE TABLE checking (
    customer bigint PRIMARY KEY,
    balance bigint NOT NULL,
    inflow bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 50)
;
INSERT INTO checking (customer, balance, inflow, version) SELECT id, :opening, 0, 0 FROM generate_series(1, :customers) AS numbers(id);
DROP TABLE IF EXISTS conflict;
--+materialize-wt CREATE TABLE conflict (customer bigint PRIMARY KEY, version bigint NOT NULL, writer bigint);
--+materialize-wt INSERT INTO conflict (customer, version) SELECT id, 0 FROM generate_series(1, :customers) AS numbers(id);
--+materialize-bw CREATE TABLE conflict (customer bigint PRIMARY KEY, version bigint NOT NULL, writer bigint);
--+materialize-bw INSERT INTO conflict (customer, version) SELECT id, 0 FROM generate_series(1, :customers) AS numbers(id);
