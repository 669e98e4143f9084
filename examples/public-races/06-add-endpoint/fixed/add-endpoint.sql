\set u random(1, 3)
BEGIN;
SELECT id FROM users WHERE id = :u FOR UPDATE;
SELECT count(*) AS endpoints FROM endpoints WHERE user_id = :u \gset
\if :endpoints < 2
INSERT INTO endpoints (user_id, url) VALUES (:u, 'b');
\endif
COMMIT;
