DROP TABLE IF EXISTS usertable;
CREATE TABLE usertable (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    -- The record's number in the order of insertion, and that of the record inserted before it.
    number bigint NOT NULL,
    previous bigint NOT NULL,
--*fields
    field:nth varchar(:length) DEFAULT lpad('', :length, '.') NOT NULL,
--*
    -- Read-modify-writes, counted by the database and by the client.
    modified bigint DEFAULT 0 NOT NULL,
    val bigint DEFAULT 0 NOT NULL
)
--+fillfactor WITH (fillfactor = 50)
;
-- Keys are scattered by Fibonacci hashing, which gives each number below 2^31 a key of its own; so
-- popular records aren't neighbours.
INSERT INTO usertable (id, version, number, previous)
    SELECT number * 2654435761 % 4294967296 AS id, 0, number, number - 1
    FROM generate_series(1, :records) AS numbers(number) ORDER BY id;
DROP SEQUENCE IF EXISTS usertable_numbers;
CREATE SEQUENCE usertable_numbers;
