-- Delivery (TPC-C clause 2.7): the oldest undelivered order of each district, in one transaction, at
-- once rather than from a queue. A district without such an order is left out.
\if :think > 0 and :attempt = 1
\set pause 2000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set carrier random(1, 10)
\set d 0
BEGIN;
--*10
\set d :d + 1
\set number 0
--@ read new_order key=$1 version=$2 value=$3
SELECT (CAST(no_w_id AS bigint) * 10 + no_d_id) * 100000000 + no_o_id AS order_key, version, writer, no_o_id AS number FROM new_order WHERE no_w_id = :w AND no_d_id = :d ORDER BY no_o_id LIMIT 1
--+for-update FOR UPDATE
\aset
\if :number > 0
--@ write new_order key=$1 version=$2 value=:attempt_id
DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :number RETURNING (CAST(no_w_id AS bigint) * 10 + no_d_id) * 100000000 + no_o_id, version + 1;
--@ write orders key=$1 version=$2 value=$3
UPDATE orders SET o_carrier_id = :carrier, version = version + 1, writer = :attempt_id WHERE o_w_id = :w AND o_d_id = :d AND o_id = :number RETURNING (CAST(o_w_id AS bigint) * 10 + o_d_id) * 100000000 + o_id AS order_key, version, writer, o_c_id AS c
\gset
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :number;
SELECT sum(ol_amount) AS total FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :number
\gset
--@ write customer key=$1 version=$2 value=$3
UPDATE customer SET c_balance = c_balance + CAST(:total AS numeric(12, 2)), c_delivery_cnt = c_delivery_cnt + 1, version = version + 1, writer = :attempt_id WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c RETURNING (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id, version, writer;
\endif
--*
COMMIT;
\if :think > 0
\set pause int(least(50000.0, -5000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
