BEGIN;
SELECT value FROM setting WHERE key = 'invoice_number' FOR UPDATE \gset
UPDATE setting SET value = :value + 1 WHERE key = 'invoice_number';
INSERT INTO invoice (number) VALUES (:value + 1);
COMMIT;
