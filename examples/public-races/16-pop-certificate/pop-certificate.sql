\set cert 0
BEGIN;
DELETE FROM cert WHERE id = (SELECT id FROM cert ORDER BY created LIMIT 1) RETURNING id AS cert \aset
\if :cert > 0
INSERT INTO used VALUES (:cert);
\endif
COMMIT;
