DROP TABLE IF EXISTS scanned;
CREATE TABLE scanned (
    id bigint PRIMARY KEY,
    -- Not in any index, so that every row has to be fetched.
    val bigint NOT NULL
)
-- No parallel workers, so that the plan is the same for both levels and all versions.
--+fillfactor WITH (parallel_workers = 0)
;
-- In ascending order, so that a scan by index reads the pages in order. A sequential scan reads the
-- whole table, so the table has only the rows to read.
INSERT INTO scanned (id, val)
    SELECT id, mod(id, 1000) FROM generate_series(1, CASE WHEN :index = 1 THEN :table_rows ELSE :rows END) AS numbers(id);
