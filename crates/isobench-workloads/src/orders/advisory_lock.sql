-- A lock on the shop's number, taken in a statement of its own before BEGIN: so the snapshot, which the first statement after BEGIN
-- takes, already has what the order before committed. (pg_advisory_xact_lock inside the block would come after the snapshot.) An
-- attempt that failed hasn't released its lock, which belongs to the session; so each begins with that. FROM is evaluated before
-- the lock is taken. The constant keeps away from numbers that somebody else may lock.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
SELECT pg_advisory_lock(7000000000000000000 + :shop) FROM pg_advisory_unlock_all();
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
