\set o random(1, 4)
BEGIN;
SELECT driver, price, (status IN ('cancelled', 'paid'))::int AS over FROM orders WHERE id = :o \gset
\if :over = 0
UPDATE wallet SET balance = balance + :price WHERE driver = :driver;
UPDATE orders SET status = 'paid' WHERE id = :o;
\endif
COMMIT;
