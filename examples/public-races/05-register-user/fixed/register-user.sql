\set n random(1000, 100000)
BEGIN;
SELECT pg_advisory_xact_lock(7001);
SELECT count(*) AS users FROM users \gset
\if :users < 5
INSERT INTO users (name) VALUES ('n' || :n);
\endif
COMMIT;
