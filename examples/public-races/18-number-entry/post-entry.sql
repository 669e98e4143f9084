\set j random(1, 2)
BEGIN;
SELECT id FROM journal WHERE id = :j FOR UPDATE;
SELECT max(number) AS last FROM entry WHERE journal = :j \gset
INSERT INTO entry (journal, number) VALUES (:j, :last + 1);
COMMIT;
