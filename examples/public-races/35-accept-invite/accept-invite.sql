\set t random(1, 4)
\set me random(1, 1000000)
SELECT count(*) AS valid FROM invite WHERE token = :t \gset
\if :valid = 1
INSERT INTO member SELECT 1, :me WHERE NOT EXISTS (SELECT 1 FROM member WHERE org = 1 AND person = :me);
DELETE FROM invite WHERE token = :t;
\endif
