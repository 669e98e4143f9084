\set e random(1, 4)
\set won 0
BEGIN;
UPDATE execution SET status = 'approved' WHERE id = :e AND status = 'pending' RETURNING 1 AS won \aset
\if :won = 1
INSERT INTO purchase (execution) VALUES (:e);
\endif
COMMIT;
