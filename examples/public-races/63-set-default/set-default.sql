\set e random(1, 4)
BEGIN;
UPDATE expert SET is_default = false WHERE is_default AND id <> :e;
UPDATE expert SET is_default = true WHERE id = :e;
COMMIT;
