\set x random(1, 4)
\set y random(1, 4)
\set a least(:x, :y)
\set b greatest(:x, :y)
BEGIN;
UPDATE run SET queued = queued + 1 WHERE id = :a;
UPDATE run SET queued = queued + 1 WHERE id = :b;
COMMIT;
