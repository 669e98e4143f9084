\set u random(1, 3)
\set url random(1, 1000000)
BEGIN;
SELECT count(*) AS endpoints FROM endpoints WHERE user_id = :u \gset
\if :endpoints < 2
INSERT INTO endpoints (user_id, url) VALUES (:u, 'https://' || :url);
\endif
COMMIT;
