-- psql 1
CREATE TABLE probe_items (id int PRIMARY KEY, val int);
CREATE TABLE probe_others (val int);
INSERT INTO probe_items VALUES (1, 10), (2, 20);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT val FROM probe_items WHERE id = 1;  -- 10, which psql 2 overwrites

-- psql 2
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT val FROM probe_items WHERE id = 2;  -- 20, which psql 1 will overwrite
UPDATE probe_items SET val = 11 WHERE id = 1;
COMMIT;
SET default_transaction_isolation = 'serializable';
DO $$ BEGIN FOR i IN 1..{transactions} LOOP INSERT INTO probe_others VALUES (i); COMMIT; END LOOP; END $$;

-- psql 1
UPDATE probe_items SET val = 21 WHERE id = 2;
COMMIT;  -- succeeds; with 1..1 above the UPDATE fails with 40001, as it should
DROP TABLE probe_items, probe_others;
