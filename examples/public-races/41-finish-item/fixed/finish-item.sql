\set i random(1, 6)
\set t (:i + 1) / 2
BEGIN;
SELECT id FROM item WHERE ticket = :t ORDER BY id FOR UPDATE;
UPDATE item SET done = true WHERE id = :i;
SELECT count(*) AS waiting FROM item WHERE ticket = :t AND NOT done \gset
\if :waiting = 0
UPDATE ticket SET done = true WHERE id = :t;
\endif
COMMIT;
