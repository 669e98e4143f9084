\set a random(1, 4)
\set b random(1, 4)
BEGIN;
UPDATE run SET queued = queued + 1 WHERE id = :a;
UPDATE run SET queued = queued + 1 WHERE id = :b;
COMMIT;
