DROP TABLE IF EXISTS mytab;
CREATE TABLE mytab (
    class bigint NOT NULL,
    id bigint NOT NULL,
    val bigint NOT NULL,
    PRIMARY KEY (class, id)
);
-- Fillers: rows of classes that no transaction uses, spread over the whole range of numbers.
-- Without them the index would consist of a single page for a long time, and PostgreSQL locks index
-- ranges by page.
INSERT INTO mytab (class, id, val) SELECT filler * 1000, -filler, 0 FROM generate_series(1, 20000) AS numbers(filler);
DROP SEQUENCE IF EXISTS mytab_turns;
CREATE SEQUENCE mytab_turns;
DROP TABLE IF EXISTS mytab_pairs;
--+materialized-conflict CREATE TABLE mytab_pairs (id bigint PRIMARY KEY, version bigint NOT NULL, writer bigint);
