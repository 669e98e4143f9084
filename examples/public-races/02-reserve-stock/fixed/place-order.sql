\set v random(1, 3)
\set q random(1, 2)
\set done 0
BEGIN;
UPDATE variant SET stock = stock - :q WHERE id = :v AND stock >= :q RETURNING 1 AS done \aset
\if :done = 1
INSERT INTO orders (variant, quantity) VALUES (:v, :q);
\endif
COMMIT;
