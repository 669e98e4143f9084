-- The shop is locked and read first. Only orders of this shop change its products, so these need no
-- locks. At repeatable read and above the snapshot is taken before waiting for the lock, so
-- concurrent changes still cause a conflict.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
BEGIN;
--@ read shops key=$1 version=$2 value=$3
SELECT id, version, writer, revenue FROM shops WHERE id = :shop FOR UPDATE
\gset
--@ read products key=$1 version=$2 value=$3
SELECT id, version, writer, price, stock FROM products WHERE id = :product
\gset
\set stock :stock - :quantity
\set revenue :revenue + :quantity * :price
--@ write products key=$1 version=$2 value=$3
UPDATE products SET version = version + 1, writer = :attempt_id, stock = :stock, sold = sold + :quantity WHERE id = :product RETURNING id, version, writer;
--@ write shops key=$1 version=$2 value=$3
UPDATE shops SET version = version + 1, writer = :attempt_id, revenue = :revenue WHERE id = :shop RETURNING id, version, writer;
COMMIT;
