\set id random(1, 3)
BEGIN;
SELECT version AS loaded, state FROM aggregate WHERE id = :id \gset
UPDATE aggregate SET state = :state + 1, version = :loaded + 1 WHERE id = :id AND version = :loaded;
COMMIT;
