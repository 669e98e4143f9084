-- The new values are computed in SQL, from the very versions that are replaced.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
--@ read products key=$1 version=$2
--@ write products key=$1 version=$3 value=:attempt_id
--@ read shops key=$4 version=$5
--@ write shops key=$4 version=$6 value=:attempt_id
WITH
    product AS (
        UPDATE products SET version = version + 1, writer = :attempt_id, stock = stock - :quantity, sold = sold + :quantity
        WHERE id = :product
        RETURNING id, version, price
    ),
    shop AS (
        UPDATE shops SET version = shops.version + 1, writer = :attempt_id, revenue = revenue + :quantity * product.price
        FROM product
        WHERE shops.id = :shop
        RETURNING shops.id, shops.version
    )
SELECT product.id, product.version - 1, product.version, shop.id, shop.version - 1, shop.version FROM product, shop;
