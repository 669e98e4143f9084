\set id random(1, 3)
BEGIN;
SELECT version AS loaded, state FROM aggregate WHERE id = :id \gset
SELECT version AS now FROM aggregate WHERE id = :id \gset
\if :now = :loaded
UPDATE aggregate SET state = :state + 1, version = :loaded + 1 WHERE id = :id;
\endif
COMMIT;
