\set k random(1, 5)
\set mine 0
BEGIN;
INSERT INTO idempotency_key VALUES (:k, 'in_progress') ON CONFLICT (key) DO NOTHING RETURNING 1 AS mine \aset
SELECT status FROM idempotency_key WHERE key = :k FOR UPDATE;
\if :mine = 1
INSERT INTO orders (key) VALUES (:k);
UPDATE idempotency_key SET status = 'completed' WHERE key = :k;
\endif
COMMIT;
