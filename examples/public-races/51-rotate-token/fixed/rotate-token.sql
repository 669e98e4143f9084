\set t random(1, 6)
\set new random(1000, 100000000)
\set family 0
BEGIN;
UPDATE token SET consumed = true WHERE jti = :t AND NOT consumed RETURNING family \aset
\if :family > 0
INSERT INTO token VALUES (:new, :family, false);
\endif
COMMIT;
