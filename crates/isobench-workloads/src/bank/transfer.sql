-- Two accounts in ascending order, which avoids deadlocks. The amount is as often negative as
-- positive, so there are transfers in both directions.
\set one random(1, :accounts - 1)
\set other random(:one + 1, :accounts)
\set amount random(-100, 100)
BEGIN;
--@ read accounts key=$1 version=$2 value=$3
SELECT id, version, writer, balance AS one_balance FROM accounts WHERE id = :one
--+for-update FOR UPDATE
\gset
--@ read accounts key=$1 version=$2 value=$3
SELECT id, version, writer, balance AS other_balance FROM accounts WHERE id = :other
--+for-update FOR UPDATE
\gset
\set one_balance :one_balance - :amount
\set other_balance :other_balance + :amount
\if :one_balance >= 0 and :other_balance >= 0
--@ write accounts key=$1 version=$2 value=$3
UPDATE accounts SET version = version + 1, writer = :attempt_id, balance = :one_balance WHERE id = :one RETURNING id, version, writer;
--@ write accounts key=$1 version=$2 value=$3
UPDATE accounts SET version = version + 1, writer = :attempt_id, balance = :other_balance WHERE id = :other RETURNING id, version, writer;
\endif
COMMIT;
