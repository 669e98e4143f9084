\set v random(1, 3)
BEGIN;
SELECT max_usages FROM voucher WHERE id = :v FOR UPDATE \gset
SELECT count(*) AS used FROM cart_position WHERE voucher = :v \gset
\if :used < :max_usages
INSERT INTO cart_position (voucher) VALUES (:v);
\endif
COMMIT;
