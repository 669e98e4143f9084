\set t random(1, 6)
\set new random(1000, 100000000)
\set user 0
DELETE FROM refresh_token WHERE hash = :t RETURNING user_id AS user \aset
\if :user > 0
INSERT INTO refresh_token VALUES (:new, :user);
\endif
