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
