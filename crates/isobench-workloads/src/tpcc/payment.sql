-- Payment (TPC-C clause 2.5): six of ten customers are chosen by name; 15 of a hundred are of another
-- warehouse than the one at which they pay.
\if :think > 0 and :attempt = 1
\set pause 3000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set d random(1, 10)
\set c_w :w
\set c_d :d
\if :warehouses > 1 and random(1, 100) <= 15
\set c_w (:w - 1 + random(1, :warehouses - 1)) % :warehouses + 1
\set c_d random(1, 10)
\endif
\set cents random(100, 500000)
\set by_name random(1, 100) <= 60
\set name ((random(0, 255) | random(0, 999)) + 173) % 1000 * least(1000, :customers / 3) / 1000
\set c (((random(0, 1023) | random(1, 3000)) + 259) % 3000) * :customers / 3000 + 1
BEGIN;
--@ write warehouse key=$1 version=$2 value=$3
UPDATE warehouse SET w_ytd = w_ytd + :cents / 100.0, version = version + 1, writer = :attempt_id WHERE w_id = :w RETURNING w_id, version, writer, w_name AS warehouse_name, w_street_1, w_street_2, w_city, w_state, w_zip
\gset
--@ write district key=$1 version=$2 value=$3
UPDATE district SET d_ytd = d_ytd + :cents / 100.0, version = version + 1, writer = :attempt_id WHERE d_w_id = :w AND d_id = :d RETURNING CAST(d_w_id AS bigint) * 10 + d_id AS district_key, version, writer, d_name AS district_name, d_street_1, d_street_2, d_city, d_state, d_zip
\gset
\if :by_name
SELECT count(*) AS matches FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 100 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 10 % 10 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) % 10 * 5 + 1, 5))
\gset
\set middle (:matches - 1) / 2
--@ read customer key=$1 version=$2 value=$3
SELECT (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id AS customer_key, version, writer, c_id AS c FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 100 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) / 10 % 10 * 5 + 1, 5)) || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', CAST(:name AS integer) % 10 * 5 + 1, 5)) ORDER BY c_first, c_id OFFSET :middle LIMIT 1
\gset
\endif
--@ write customer key=$1 version=$2 value=$3
UPDATE customer SET c_balance = c_balance - :cents / 100.0, c_ytd_payment = c_ytd_payment + :cents / 100.0, c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN substr(CAST(c_id AS varchar(20)) || ' ' || CAST(c_d_id AS varchar(20)) || ' ' || CAST(c_w_id AS varchar(20)) || ' ' || CAST(CAST(:d AS integer) AS varchar(20)) || ' ' || CAST(CAST(:w AS integer) AS varchar(20)) || ' ' || CAST(CAST(:cents AS integer) / 100.0 AS varchar(20)) || ' ' || c_data, 1, 500) ELSE c_data END, version = version + 1, writer = :attempt_id WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c RETURNING (CAST(c_w_id AS bigint) * 10 + c_d_id) * 100000 + c_id, version, writer, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN substr(c_data, 1, 200) END;
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (:c, :c_d, :c_w, :d, :w, CURRENT_TIMESTAMP, :cents / 100.0, CAST(:warehouse_name AS varchar(10)) || '    ' || CAST(:district_name AS varchar(10)));
COMMIT;
\if :think > 0
\set pause int(least(120000.0, -12000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
