-- The function returns the SQLSTATE of the conflict that it caught, or NULL and what it read.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
--@ swallowed sqlstate=$1
--@ read products key=:product version=$2 value=$3
--@ read shops key=:shop version=$4 value=$5
--@ write products key=:product version=$6 value=:attempt_id
--@ write shops key=:shop version=$7 value=:attempt_id
SELECT * FROM orders_swallow(:product, :shop, :quantity, :attempt_id);
