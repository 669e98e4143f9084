\set p random(1, 3)
\set a random(40, 80)
BEGIN;
SELECT amount FROM payment WHERE id = :p \gset
SELECT coalesce(sum(amount), 0) AS refunded FROM refund WHERE payment = :p \gset
\if :refunded + :a <= :amount
INSERT INTO refund (payment, amount) VALUES (:p, :a);
\endif
COMMIT;
