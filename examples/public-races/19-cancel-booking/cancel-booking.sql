\set b random(1, 4)
BEGIN;
SELECT cancelled::int AS cancelled FROM booking WHERE id = :b \gset
\if :cancelled = 0
SELECT booked FROM stock WHERE id = 1 FOR UPDATE;
UPDATE booking SET cancelled = true WHERE id = :b;
UPDATE stock SET booked = booked - 2 WHERE id = 1;
\endif
COMMIT;
