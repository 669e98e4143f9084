\set t random(1, 6)
\set new random(1000, 100000000)
SELECT family, consumed::int AS consumed FROM token WHERE jti = :t \gset
\if :consumed = 0
UPDATE token SET consumed = true WHERE jti = :t AND NOT consumed;
INSERT INTO token VALUES (:new, :family, false);
\endif
