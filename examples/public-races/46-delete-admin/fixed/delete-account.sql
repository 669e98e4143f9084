\set a random(1, 2)
BEGIN;
SELECT count(*) AS others FROM (SELECT id FROM account WHERE admin ORDER BY id FOR UPDATE) admins WHERE id <> :a \gset
\if :others > 0
DELETE FROM account WHERE id = :a;
\endif
COMMIT;
