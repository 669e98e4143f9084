\set t random(1, 4)
\set me random(1, 1000000)
BEGIN;
INSERT INTO member SELECT 1, :me WHERE EXISTS (SELECT 1 FROM invite WHERE token = :t) AND NOT EXISTS (SELECT 1 FROM member WHERE org = 1 AND person = :me);
DELETE FROM invite WHERE token = :t AND EXISTS (SELECT 1 FROM member WHERE org = 1 AND person = :me);
COMMIT;
