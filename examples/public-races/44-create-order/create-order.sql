\set k random(1, 5)
\set completed 0
BEGIN;
SELECT (status = 'completed')::int AS completed FROM idempotency_key WHERE key = :k FOR UPDATE \aset
\if :completed = 0
INSERT INTO idempotency_key VALUES (:k, 'in_progress') ON CONFLICT (key) DO UPDATE SET status = 'in_progress';
INSERT INTO orders (key) VALUES (:k);
UPDATE idempotency_key SET status = 'completed' WHERE key = :k;
\endif
COMMIT;
