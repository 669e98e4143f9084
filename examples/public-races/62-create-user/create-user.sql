\set n random(1, 4)
BEGIN;
SELECT count(*) AS living FROM users WHERE username = :n AND deleted_at IS NULL \gset
\if :living = 0
INSERT INTO users (username) VALUES (:n);
\endif
COMMIT;
