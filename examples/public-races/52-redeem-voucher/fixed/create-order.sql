\set v random(1, 3)
\set me random(1, 1000000)
BEGIN;
SELECT pg_advisory_xact_lock(52);
SELECT max_usages, redeemed FROM voucher WHERE id = :v \gset
\if :redeemed < :max_usages
UPDATE voucher SET redeemed = redeemed + 1 WHERE id = :v;
INSERT INTO position (voucher, attendee) VALUES (:v, :me);
\endif
COMMIT;
