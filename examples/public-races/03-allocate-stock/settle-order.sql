\set v random(1, 2)
\set l random(1, 2)
BEGIN;
SELECT sum(on_hand - allocated) AS free FROM stock_level WHERE variant = :v \gset
\if :free >= 2
UPDATE stock_level SET allocated = allocated + 2 WHERE variant = :v AND location = :l;
INSERT INTO allocation (variant, quantity) VALUES (:v, 2);
\endif
COMMIT;
