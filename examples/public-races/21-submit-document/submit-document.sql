\set id random(1, 4)
\set s 9
BEGIN;
SELECT docstatus AS s FROM document WHERE id = :id \aset
\if :s = 0
UPDATE document SET docstatus = 1 WHERE id = :id;
INSERT INTO posting (document) VALUES (:id);
\endif
COMMIT;
