\set u random(1, 4)
\set t (:u + 1) / 2
BEGIN;
SELECT id FROM users WHERE tenant = :t AND role = 'admin' ORDER BY id FOR UPDATE;
SELECT count(*) AS others FROM users WHERE tenant = :t AND role = 'admin' AND id <> :u \gset
\if :others > 0
UPDATE users SET role = 'agent' WHERE id = :u;
\endif
COMMIT;
