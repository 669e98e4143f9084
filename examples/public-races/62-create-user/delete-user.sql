\set n random(1, 4)
\set now random(1000, 1000000)
UPDATE users SET deleted_at = :now WHERE username = :n AND deleted_at IS NULL;
