-- Stock-Level (TPC-C clause 2.8): how many of the items in the last 20 orders of the terminal's district
-- are short.
\if :think > 0 and :attempt = 1
\set pause 2000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set d :client_id / :warehouses % 10 + 1
\set threshold random(10, 20)
BEGIN;
--@ read district key=$1 version=$2 value=$3
SELECT CAST(d_w_id AS bigint) * 10 + d_id AS district_key, version, writer, d_next_o_id AS next FROM district WHERE d_w_id = :w AND d_id = :d
\gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id < :next AND ol_o_id >= :next - 20 AND s_w_id = :w AND s_quantity < :threshold;
COMMIT;
\if :think > 0
\set pause int(least(50000.0, -5000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
