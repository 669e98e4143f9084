-- New-Order (TPC-C clause 2.4): the customer, the warehouse's and the district's taxes, 5 to 15 lines,
-- and the order. One in a hundred names an item that doesn't exist, and is rolled back.
\if :think > 0 and :attempt = 1
\set pause 18000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set d random(1, 10)
\set c (((random(0, 1023) | random(1, 3000)) + 259) % 3000) * :customers / 3000 + 1
\set lines random(5, 15)
\set mistaken random(1, 100) = 1
\set found true
\set all_local 1
\set line 0
BEGIN;
--@ read warehouse key=$1 version=$2 value=$3
SELECT w_id, version, writer, w_tax FROM warehouse WHERE w_id = :w;
--@ read customer key=$1 version=$2 value=$3
SELECT (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id, version, writer, c_discount, c_last, c_credit FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
--@ write district key=$1 version=$2 value=$3
UPDATE district SET d_next_o_id = d_next_o_id + 1, version = version + 1, writer = :attempt_id WHERE d_w_id = :w AND d_id = :d RETURNING CAST(d_w_id AS bigint) * 10 + d_id AS d_key, version, writer, d_next_o_id - 1 AS number, d_tax
\gset
--*15
\set line :line + 1
\if :line <= :lines
\set i (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) * :items / 100000 + 1
\if :mistaken and :line = :lines
\set i :items + 1
\endif
\set supply :w
\if :warehouses > 1 and random(1, 100) = 1
\set supply (:w - 1 + random(1, :warehouses - 1)) % :warehouses + 1
\set all_local 0
\endif
\set quantity random(1, 10)
\set price 0
SELECT i_price AS price, i_name, i_data FROM item WHERE i_id = :i
\aset
\if :price > 0
--@ write stock key=$1 version=$2 value=$3
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= :quantity + 10 THEN s_quantity - :quantity ELSE s_quantity - :quantity + 91 END, s_ytd = s_ytd + :quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = :w THEN 0 ELSE 1 END, version = version + 1, writer = :attempt_id WHERE s_w_id = :supply AND s_i_id = :i RETURNING CAST(s_w_id AS bigint) * 1000000 + s_i_id AS place, version, writer, CASE CAST(:d AS integer) WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS info, s_quantity, s_data
\gset
--@ insert order_line key=$1 group=$2
INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (:w, :d, :number, :line, :i, :supply, NULL, :quantity, CAST(:quantity AS integer) * CAST(:price AS numeric(5, 2)), CAST(:info AS char(24))) RETURNING ((CAST(ol_w_id AS bigint) * 10 + ol_d_id) * 100000000 + ol_o_id) * 100 + ol_number, (CAST(ol_w_id AS bigint) * 10 + ol_d_id) * 100000000 + ol_o_id;
\else
\set found false
\endif
\endif
--*
\if :found
--@ write orders key=$1 version=$2 value=$3
INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local, version, writer) VALUES (:w, :d, :number, :c, CURRENT_TIMESTAMP, NULL, :lines, :all_local, 1, :attempt_id) RETURNING (CAST(o_w_id AS bigint) * 10 + o_d_id) * 100000000 + o_id, version, writer;
--@ write new_order key=$1 version=$2 value=$3
INSERT INTO new_order (no_w_id, no_d_id, no_o_id, version, writer) VALUES (:w, :d, :number, 1, :attempt_id) RETURNING (CAST(no_w_id AS bigint) * 10 + no_d_id) * 100000000 + no_o_id, version, writer;
COMMIT;
\else
ROLLBACK;
\endif
\if :think > 0
\set pause int(least(120000.0, -12000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
