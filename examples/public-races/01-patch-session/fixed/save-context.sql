\set id random(1, 3)
\set new random(1, 1000)
BEGIN;
SELECT 1 FROM sessions WHERE id = :id FOR UPDATE;
SELECT context, ready FROM sessions WHERE id = :id \gset
UPDATE sessions SET context = :new, ready = :ready WHERE id = :id;
COMMIT;
