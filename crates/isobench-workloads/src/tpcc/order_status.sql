-- Order-Status (TPC-C clause 2.6): a customer's balance and last order, with its lines.
\if :think > 0 and :attempt = 1
\set pause 2000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set d random(1, 10)
\set by_name random(1, 100) <= 60
\set name ((random(0, 255) | random(0, 999)) + 173) % 1000 * least(1000, :customers / 3) / 1000
\set c (((random(0, 1023) | random(1, 3000)) + 259) % 3000) * :customers / 3000 + 1
BEGIN;
\if :by_name
SELECT count(*) AS matches FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 100 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 10 % 10 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) % 10 * 5 + 1, 5))
\gset
\set middle (:matches - 1) / 2
--@ read customer key=$1 version=$2 value=$3
SELECT (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id AS customer_key, version, writer, c_id AS c, c_first, c_middle, c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 100 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 10 % 10 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) % 10 * 5 + 1, 5)) ORDER BY c_first, c_id OFFSET :middle LIMIT 1
\gset
\else
--@ read customer key=$1 version=$2 value=$3
SELECT (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id, version, writer, c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
\endif
--@ read orders key=$1 version=$2 value=$3
SELECT (CAST(o_w_id AS bigint) * 10 + o_d_id) * 100000000 + o_id AS order_key, version, writer, o_id AS number, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c ORDER BY o_id DESC LIMIT 1
\gset
--@ read-group order_line group=:order_key key=$1
SELECT ((CAST(ol_w_id AS bigint) * 10 + ol_d_id) * 100000000 + ol_o_id) * 100 + ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :number;
COMMIT;
\if :think > 0
\set pause int(least(100000.0, -10000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
