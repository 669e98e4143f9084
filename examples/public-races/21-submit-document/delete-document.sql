\set id random(1, 4)
\set s 9
BEGIN;
SELECT docstatus AS s FROM document WHERE id = :id \aset
\if :s = 0
DELETE FROM document WHERE id = :id;
\endif
COMMIT;
