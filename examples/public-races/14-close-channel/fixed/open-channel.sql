\set p random(1, 2)
BEGIN;
SELECT count(*) AS known FROM link_node WHERE pub = :p \gset
\if :known = 0
INSERT INTO link_node VALUES (:p, 'a');
\else
UPDATE link_node SET addr = 'a' WHERE pub = :p;
\endif
INSERT INTO channel (pub, open) VALUES (:p, true);
COMMIT;
