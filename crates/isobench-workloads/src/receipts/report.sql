\set till random(1, :tills)
BEGIN;
--@ read control key=$1 version=$2 value=$3
SELECT id, version, writer, batch - 1 AS closed FROM control WHERE id = :till
\gset
-- The batch that was closed last; its receipts must not change any more.
--@ read-group receipts group=:closed key=$1
SELECT id, amount FROM receipts WHERE batch = :closed;
--+filed INSERT INTO reports (id, batch, seen) SELECT nextval('receipts_numbers'), CAST(:closed AS bigint), count(*) FROM receipts WHERE batch = :closed;
COMMIT;
