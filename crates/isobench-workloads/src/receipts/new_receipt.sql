\set till random(1, :tills)
\set amount random(1, 100)
BEGIN;
--@ read control key=$1 version=$2 value=$3
SELECT id, version, writer, batch FROM control WHERE id = :till
\gset
--@ insert receipts key=$1 group=$2
INSERT INTO receipts (batch, id, amount) VALUES (:batch, nextval('receipts_numbers'), :amount) RETURNING id, batch;
COMMIT;
