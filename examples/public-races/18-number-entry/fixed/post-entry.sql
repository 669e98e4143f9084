\set j random(1, 2)
BEGIN;
UPDATE journal SET name = name WHERE id = :j;
SELECT max(number) AS last FROM entry WHERE journal = :j \gset
INSERT INTO entry (journal, number) VALUES (:j, :last + 1);
COMMIT;
