\set n random(1, 4)
BEGIN;
SELECT count(*) AS living FROM users WHERE username = :n AND deleted_at = 0 \gset
\if :living = 0
INSERT INTO users (username) VALUES (:n);
\endif
COMMIT;
