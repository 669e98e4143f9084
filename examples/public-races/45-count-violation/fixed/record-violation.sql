\set u random(1, 3)
BEGIN;
UPDATE users SET violations = violations + 1 WHERE id = :u RETURNING violations \gset
\if :violations >= 3
UPDATE users SET blocked = true WHERE id = :u;
\endif
INSERT INTO moderation_log (user_id) VALUES (:u);
COMMIT;
