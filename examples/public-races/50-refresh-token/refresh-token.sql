\set t random(1, 6)
\set new random(1000, 100000000)
\set user 0
SELECT user_id AS user FROM refresh_token WHERE hash = :t \aset
\if :user > 0
DELETE FROM refresh_token WHERE hash = :t;
INSERT INTO refresh_token VALUES (:new, :user);
\endif
