\set u random(1, 3)
SELECT violations FROM users WHERE id = :u \gset
UPDATE users SET violations = :violations + 1, blocked = (:violations + 1 >= 3) WHERE id = :u;
INSERT INTO moderation_log (user_id) VALUES (:u);
