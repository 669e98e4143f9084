-- A lock on the shop's number, taken by a statement before BEGIN, so that the snapshot, which is
-- taken by the first statement after BEGIN, includes the preceding order. (pg_advisory_xact_lock
-- inside the block would come after the snapshot.) The lock belongs to the session, so a failed
-- attempt doesn't release it, and each attempt starts by unlocking. FROM is evaluated before the
-- lock is taken. The schema is a part of the key, so that locks of others, or of the same tables in
-- another schema, are others.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
SELECT pg_advisory_lock(hashtext(current_schema()), :shop) FROM pg_advisory_unlock_all();
BEGIN;
--@ read products key=$1 version=$2 value=$3
SELECT id, version, writer, price, stock FROM products WHERE id = :product
\gset
--@ read shops key=$1 version=$2 value=$3
SELECT id, version, writer, revenue FROM shops WHERE id = :shop
\gset
\set stock :stock - :quantity
\set revenue :revenue + :quantity * :price
--@ write products key=$1 version=$2 value=$3
UPDATE products SET version = version + 1, writer = :attempt_id, stock = :stock, sold = sold + :quantity WHERE id = :product RETURNING id, version, writer;
--@ write shops key=$1 version=$2 value=$3
UPDATE shops SET version = version + 1, writer = :attempt_id, revenue = :revenue WHERE id = :shop RETURNING id, version, writer;
COMMIT;
SELECT pg_advisory_unlock_all();
