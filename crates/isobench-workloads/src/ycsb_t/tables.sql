DROP TABLE IF EXISTS economy;
CREATE TABLE economy (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    balance bigint NOT NULL,
    -- 0: deleted. The row stays, because it shows its version.
    open bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
-- Keys are scattered as those of ycsb.
INSERT INTO economy (id, version, balance, open)
    SELECT number * 2654435761 % 4294967296 AS id, 0, :opening, 1
    FROM generate_series(1, :records) AS numbers(number) ORDER BY id;
DROP TABLE IF EXISTS pots;
CREATE TABLE pots (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    amount bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO pots (id, version, amount) SELECT id, 0, 0 FROM generate_series(1, :pots) AS numbers(id);
