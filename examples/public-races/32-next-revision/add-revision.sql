\set i random(1, 3)
BEGIN;
SELECT max(number) AS last FROM revision WHERE item = :i \gset
INSERT INTO revision (item, number) VALUES (:i, :last + 1);
COMMIT;
