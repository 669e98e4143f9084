\set id random(1, 3)
BEGIN;
SELECT context, ready FROM sessions WHERE id = :id \gset
UPDATE sessions SET context = :context, ready = 1 WHERE id = :id;
COMMIT;
