DROP TABLE IF EXISTS lists;
CREATE TABLE lists (
    id bigint PRIMARY KEY,
    elements text NOT NULL
)
--+fillfactor WITH (fillfactor = 50)
;
-- Lists that no transaction uses, spread over all numbers. Without them the index would be one page for long, and
-- PostgreSQL's locks on ranges of an index are locks on its pages.
INSERT INTO lists (id, elements) SELECT filler * 1000, '' FROM generate_series(1, 20000) AS numbers(filler);
DROP SEQUENCE IF EXISTS lists_turns;
CREATE SEQUENCE lists_turns;
