\set e random(1, 4)
SELECT (status = 'pending')::int AS cancelable FROM execution WHERE id = :e \gset
\if :cancelable = 1
BEGIN;
INSERT INTO execution VALUES (:e, 'cancelled') ON CONFLICT (id) DO UPDATE SET status = excluded.status;
COMMIT;
\endif
