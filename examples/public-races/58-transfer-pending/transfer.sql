\set w random(1, 3)
\set a random(40, 80)
BEGIN;
SELECT amount FROM balance WHERE wallet = :w \gset
SELECT coalesce(sum(amount), 0) AS pending FROM pending WHERE wallet = :w \gset
\if :amount - :pending >= :a
INSERT INTO pending (wallet, amount) VALUES (:w, :a);
\endif
COMMIT;
