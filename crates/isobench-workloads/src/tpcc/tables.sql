-- The tables of TPC-C, clause 1.3, with the items, which belong to no warehouse. `version` and
-- `writer` are isobench's, and `filler`, which gives each row of two small tables a page of its own.
DROP TABLE IF EXISTS history;
DROP TABLE IF EXISTS new_order;
DROP TABLE IF EXISTS order_line;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS stock;
DROP TABLE IF EXISTS item;
DROP TABLE IF EXISTS customer;
DROP TABLE IF EXISTS district;
DROP TABLE IF EXISTS warehouse;
CREATE TABLE warehouse (
    w_id integer PRIMARY KEY,
    w_name varchar(10) NOT NULL,
    w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL,
    w_city varchar(20) NOT NULL,
    w_state char(2) NOT NULL,
    w_zip char(9) NOT NULL,
    w_tax numeric(4, 4) NOT NULL,
    w_ytd numeric(12, 2) NOT NULL,
    version bigint NOT NULL,
    writer bigint,
    filler char(800) DEFAULT ''
)
--+fillfactor WITH (fillfactor = 10)
;
CREATE TABLE district (
    d_w_id integer NOT NULL,
    d_id integer NOT NULL,
    d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL,
    d_street_2 varchar(20) NOT NULL,
    d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL,
    d_zip char(9) NOT NULL,
    d_tax numeric(4, 4) NOT NULL,
    d_ytd numeric(12, 2) NOT NULL,
    d_next_o_id integer NOT NULL,
    version bigint NOT NULL,
    writer bigint,
    filler char(800) DEFAULT '',
    PRIMARY KEY (d_w_id, d_id)
)
--+fillfactor WITH (fillfactor = 10)
;
CREATE TABLE customer (
    c_w_id integer NOT NULL,
    c_d_id integer NOT NULL,
    c_id integer NOT NULL,
    c_first varchar(16) NOT NULL,
    c_middle char(2) NOT NULL,
    c_last varchar(16) NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL,
    c_phone char(16) NOT NULL,
    c_since timestamp NOT NULL,
    c_credit char(2) NOT NULL,
    c_credit_lim numeric(12, 2) NOT NULL,
    c_discount numeric(4, 4) NOT NULL,
    c_balance numeric(12, 2) NOT NULL,
    c_ytd_payment numeric(12, 2) NOT NULL,
    c_payment_cnt integer NOT NULL,
    c_delivery_cnt integer NOT NULL,
    c_data varchar(500) NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 90)
;
CREATE TABLE history (
    h_c_id integer NOT NULL,
    h_c_d_id integer NOT NULL,
    h_c_w_id integer NOT NULL,
    h_d_id integer NOT NULL,
    h_w_id integer NOT NULL,
    h_date timestamp NOT NULL,
    h_amount numeric(6, 2) NOT NULL,
    h_data varchar(24) NOT NULL
);
CREATE TABLE item (
    i_id integer NOT NULL,
    i_im_id integer NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price numeric(5, 2) NOT NULL,
    i_data varchar(50) NOT NULL
);
CREATE TABLE stock (
    s_w_id integer NOT NULL,
    s_i_id integer NOT NULL,
    s_quantity integer NOT NULL,
    s_dist_01 char(24) NOT NULL,
    s_dist_02 char(24) NOT NULL,
    s_dist_03 char(24) NOT NULL,
    s_dist_04 char(24) NOT NULL,
    s_dist_05 char(24) NOT NULL,
    s_dist_06 char(24) NOT NULL,
    s_dist_07 char(24) NOT NULL,
    s_dist_08 char(24) NOT NULL,
    s_dist_09 char(24) NOT NULL,
    s_dist_10 char(24) NOT NULL,
    s_ytd integer NOT NULL,
    s_order_cnt integer NOT NULL,
    s_remote_cnt integer NOT NULL,
    s_data varchar(50) NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 90)
;
CREATE TABLE orders (
    o_w_id integer NOT NULL,
    o_d_id integer NOT NULL,
    o_id integer NOT NULL,
    o_c_id integer NOT NULL,
    o_entry_d timestamp NOT NULL,
    o_carrier_id integer,
    o_ol_cnt integer NOT NULL,
    o_all_local integer NOT NULL,
    version bigint NOT NULL,
    writer bigint
);
CREATE TABLE new_order (
    no_w_id integer NOT NULL,
    no_d_id integer NOT NULL,
    no_o_id integer NOT NULL,
    version bigint NOT NULL,
    writer bigint
);
CREATE TABLE order_line (
    ol_w_id integer NOT NULL,
    ol_d_id integer NOT NULL,
    ol_o_id integer NOT NULL,
    ol_number integer NOT NULL,
    ol_i_id integer NOT NULL,
    ol_supply_w_id integer NOT NULL,
    ol_delivery_d timestamp,
    ol_quantity integer NOT NULL,
    ol_amount numeric(6, 2) NOT NULL,
    ol_dist_info char(24) NOT NULL
);
INSERT INTO item
    SELECT i, 1 + mod(i * 48271, 10000), CAST(100000000000000 + i AS varchar(24)), (100 + mod(i * 69621, 9901)) / 100.0,
        CASE WHEN mod(i * 16807, 100003) < 10000 THEN 'ORIGINAL' ELSE '' END
        || rpad(CAST(i AS varchar(20)), CAST(26 + mod(i * 39373, 17) AS integer), '0123456789')
    FROM generate_series(CAST(1 AS bigint), :items) AS items(i);
