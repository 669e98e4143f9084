\set i random(1, 4)
BEGIN;
SELECT (status = 'draft')::int AS draft FROM invoice WHERE id = :i \gset
\if :draft = 1
SELECT last FROM series WHERE id = 1 FOR UPDATE \gset
UPDATE series SET last = :last + 1 WHERE id = 1;
UPDATE invoice SET status = 'issued', number = :last + 1 WHERE id = :i;
INSERT INTO tax_record (invoice, number) VALUES (:i, :last + 1);
\endif
COMMIT;
