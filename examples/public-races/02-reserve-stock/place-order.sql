\set v random(1, 3)
\set q random(1, 2)
SELECT stock FROM variant WHERE id = :v \gset
\if :stock >= :q
INSERT INTO orders (variant, quantity) VALUES (:v, :q);
UPDATE variant SET stock = stock - :q WHERE id = :v;
\endif
