-- The procedure reads, computes and writes, with up to 10 retries. It returns what the last attempt
-- read.
\set shop random(1, :shops)
\set product (:shop - 1) * :products + random(1, :products)
\set quantity random(1, 5)
--@ inside retries=$1 wasted=$2
--@ read products key=:product version=$3 value=$4
--@ read shops key=:shop version=$5 value=$6
--@ write products key=:product version=$7 value=:attempt_id
--@ write shops key=:shop version=$8 value=:attempt_id
CALL orders_retry(:product, :shop, :quantity, :attempt_id, 10, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
