-- After a conflict the client rolls back to the savepoint, and repeats the statements after it.
-- RELEASE is the actual commit.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
BEGIN;
SAVEPOINT cockroach_restart;
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
RELEASE SAVEPOINT cockroach_restart;
COMMIT;
