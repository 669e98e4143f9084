\set o random(1, 4)
BEGIN;
SELECT (status IN ('cancelled', 'paid'))::int AS over FROM orders WHERE id = :o \gset
\if :over = 0
UPDATE orders SET status = 'cancelled' WHERE id = :o;
\endif
COMMIT;
