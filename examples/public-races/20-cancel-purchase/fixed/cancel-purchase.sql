\set p random(1, 4)
BEGIN;
SELECT (state = 'reserved')::int AS reserved FROM purchase WHERE id = :p FOR UPDATE \gset
\if :reserved = 1
UPDATE purchase SET state = 'cancelled' WHERE id = :p;
UPDATE tier SET capacity = capacity + 1 WHERE id = 1;
\endif
COMMIT;
