\set p random(1, 2)
BEGIN;
UPDATE channel SET open = false WHERE id = (SELECT min(id) FROM channel WHERE pub = :p AND open);
SELECT count(*) AS remaining FROM channel WHERE pub = :p AND open \gset
\if :remaining = 0
DELETE FROM link_node WHERE pub = :p;
\endif
COMMIT;
