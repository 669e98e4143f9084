-- Two accounts, and the more popular one last, which avoids deadlocks.
\if :rank = :one
\if :one < :records
\set one :one + 1
\else
\set rank :rank - 1
\endif
\endif
\set number 1 + (:one - 1 + :shift) % :records
\set one :number * 2654435761 % 4294967296
\set number 1 + (:rank - 1 + :shift) % :records
\set other :number * 2654435761 % 4294967296
-- 1 goes from one to the other, in either direction.
\set amount random(0, 1) * 2 - 1
BEGIN;
--@ read economy key=$1 version=$2 value=$3
SELECT id, version, writer, balance AS one_balance, open AS one_open FROM economy WHERE id = :one
--+for-update FOR UPDATE
\gset
--@ read economy key=$1 version=$2 value=$3
SELECT id, version, writer, balance AS other_balance, open AS other_open FROM economy WHERE id = :other
--+for-update FOR UPDATE
\gset
\set one_balance :one_balance - :amount
\set other_balance :other_balance + :amount
\if :one_open = 1 and :other_open = 1 and :one_balance >= 0 and :other_balance >= 0
--@ write economy key=$1 version=$2 value=$3
UPDATE economy SET balance = :one_balance, version = version + 1, writer = :attempt_id WHERE id = :one RETURNING id, version, writer;
--@ write economy key=$1 version=$2 value=$3
UPDATE economy SET balance = :other_balance, version = version + 1, writer = :attempt_id WHERE id = :other RETURNING id, version, writer;
\endif
COMMIT;
