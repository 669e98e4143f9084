DROP TABLE IF EXISTS mytab;
CREATE TABLE mytab (
    class bigint NOT NULL,
    id bigint NOT NULL,
    val bigint NOT NULL,
    PRIMARY KEY (class, id)
);
-- Rows of classes that no transaction uses, spread over all numbers. Without them the index would be one page for long, and
-- PostgreSQL's locks on ranges of an index are locks on its pages.
INSERT INTO mytab (class, id, val) SELECT filler * 1000, -filler, 0 FROM generate_series(1, 20000) AS numbers(filler);
DROP SEQUENCE IF EXISTS mytab_turns;
CREATE SEQUENCE mytab_turns;
DROP TABLE IF EXISTS mytab_pairs;
--+materialized-conflict CREATE TABLE mytab_pairs (id bigint PRIMARY KEY, version bigint NOT NULL, writer bigint);
