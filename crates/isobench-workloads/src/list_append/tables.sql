DROP TABLE IF EXISTS lists;
CREATE TABLE lists (
    id bigint PRIMARY KEY,
    elements text NOT NULL
)
--+fillfactor WITH (fillfactor = 50)
;
-- Fillers: lists that no transaction uses, spread over the whole range of numbers. Without them the
-- index would consist of a single page for a long time, and PostgreSQL locks index ranges by page.
INSERT INTO lists (id, elements) SELECT filler * 1000, '' FROM generate_series(1, 20000) AS numbers(filler);
DROP SEQUENCE IF EXISTS lists_turns;
CREATE SEQUENCE lists_turns;
