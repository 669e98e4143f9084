\set category random(0, 3)
BEGIN;
SELECT coalesce(sum(stock), 0) AS stock FROM product WHERE category = :category \gset
\if :stock < 2990
UPDATE product SET stock = stock + 5 WHERE category = :category;
\endif
COMMIT;
