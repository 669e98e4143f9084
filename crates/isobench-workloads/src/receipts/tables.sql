DROP TABLE IF EXISTS control;
CREATE TABLE control (
    id bigint PRIMARY KEY,
    batch bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 10)
;
-- Each till numbers its batches from 1,000,000 times its own number.
INSERT INTO control (id, batch, version) SELECT till, till * 1000000 + 1, 0 FROM generate_series(1, :tills) AS numbers(till);
DROP TABLE IF EXISTS receipts;
CREATE TABLE receipts (
    batch bigint NOT NULL,
    id bigint NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (batch, id)
);
DROP SEQUENCE IF EXISTS receipts_numbers;
CREATE SEQUENCE receipts_numbers;
DROP TABLE IF EXISTS reports;
--+filed CREATE TABLE reports (id bigint PRIMARY KEY, batch bigint NOT NULL, seen bigint NOT NULL);
