\set e random(1, 4)
BEGIN;
SELECT id FROM expert ORDER BY id FOR UPDATE;
UPDATE expert SET is_default = false WHERE is_default AND id <> :e;
UPDATE expert SET is_default = true WHERE id = :e;
COMMIT;
