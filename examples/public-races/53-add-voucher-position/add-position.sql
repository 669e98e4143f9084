\set v random(1, 3)
\set me random(1, 1000000)
BEGIN;
SELECT count(*) AS used FROM cart_position WHERE voucher = :v \gset
SELECT max_usages FROM voucher WHERE id = :v FOR UPDATE \gset
\if :used < :max_usages
INSERT INTO cart_position (voucher, cart) VALUES (:v, :me);
\endif
COMMIT;
