DROP TABLE IF EXISTS scanned;
CREATE TABLE scanned (
    id bigint PRIMARY KEY,
    -- No index has it, so that every row has to be fetched.
    val bigint NOT NULL
)
-- One process reads it, so that both levels and all versions do the same.
--+fillfactor WITH (parallel_workers = 0)
;
-- In ascending order: by index the pages are read one after the other. A sequential scan reads all that there is, so there are just so many.
INSERT INTO scanned (id, val)
    SELECT id, mod(id, 1000) FROM generate_series(1, CASE WHEN :index = 1 THEN :table_rows ELSE :rows END) AS numbers(id);
