-- An account is deleted, and its money goes to the client's pot.
\set pot 1 + :client_id % :pots
BEGIN;
--@ read economy key=$1 version=$2 value=$3
SELECT id, version, writer, balance, open FROM economy WHERE id = :id
--+for-update FOR UPDATE
\gset
\if :open = 1
--@ read pots key=$1 version=$2 value=$3
SELECT id AS pot, version, writer, amount FROM pots WHERE id = :pot
--+for-update FOR UPDATE
\gset
\set amount :amount + :balance
--@ write economy key=$1 version=$2 value=$3
UPDATE economy SET balance = 0, open = 0, version = version + 1, writer = :attempt_id WHERE id = :id RETURNING id, version, writer;
--@ write pots key=$1 version=$2 value=$3
UPDATE pots SET amount = :amount, version = version + 1, writer = :attempt_id WHERE id = :pot RETURNING id, version, writer;
\endif
COMMIT;
