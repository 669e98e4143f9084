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
