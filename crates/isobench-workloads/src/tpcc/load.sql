-- The initial population of the warehouses from :first to :last, TPC-C clause 4.3.3.1. What the
-- standard draws at random comes from multiplications modulo a prime, so that every load is the same.
-- Names that scripts pass on are numbers, which need no quotes.
INSERT INTO warehouse (w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd, version, writer)
    SELECT w, CAST(1000000 + w AS varchar(10)), '1 Main Street', '2 Side Street', 'City', 'ST', '123411111',
        mod(w * 16807, 2001) / 10000.0, 100 * :customers, 0, NULL
    FROM generate_series(:first, :last) AS warehouses(w);
INSERT INTO district (d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id,
        version, writer)
    SELECT w, d, CAST(1000000 + d AS varchar(10)), '1 Main Street', '2 Side Street', 'City', 'ST', '123411111',
        mod((w * 10 + d) * 16807, 2001) / 10000.0, 10 * :customers, :customers + 1, 0, NULL
    FROM generate_series(:first, :last) AS warehouses(w) CROSS JOIN generate_series(1, 10) AS districts(d);
-- The first third of the customers of a district (at most 1000) have different names, the others are spread over
-- them as NURand(255, 0, 999) does with its C at load time, 91: eight bits are set in three of four
-- cases each. A name is three syllables of five letters at most.
INSERT INTO customer
    SELECT w, d, c, CAST(100000 + mod(n * 48271, 899981) AS varchar(16)), 'OE',
        rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', number / 100 * 5 + 1, 5))
        || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', mod(number / 10, 10) * 5 + 1, 5))
        || rtrim(substr('BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ', mod(number, 10) * 5 + 1, 5)),
        '1 Main Street', '2 Side Street', 'City', 'ST', '123411111', '1234567890123456', CURRENT_TIMESTAMP,
        CASE WHEN mod(n * 69621, 100003) < 10000 THEN 'BC' ELSE 'GC' END, 50000, mod(n * 39373, 5001) / 10000.0,
        -10, 10, 1, 0, rpad(CAST(n AS varchar(20)), CAST(300 + mod(n * 16807, 201) AS integer), '0123456789'), 0, NULL
    FROM (
        SELECT w, d, c, n, CAST(CASE WHEN c <= least(1000, :customers / 3) THEN c - 1
            ELSE mod(least(1, mod(bits, 4)) + 2 * least(1, mod(bits / 4, 4)) + 4 * least(1, mod(bits / 16, 4))
                + 8 * least(1, mod(bits / 64, 4)) + 16 * least(1, mod(bits / 256, 4)) + 32 * least(1, mod(bits / 1024, 4))
                + 64 * least(1, mod(bits / 4096, 4)) + 128 * least(1, mod(bits / 16384, 4))
                + 256 * mod(bits / 65536, 4) + 91, 1000) * least(1000, :customers / 3) / 1000
            END AS integer) AS number
        FROM (
            SELECT w, d, c, n, mod(n * 69621, 2147483647) AS bits
            FROM (
                SELECT w, d, c, CAST((w - 1) * 10 + d - 1 AS bigint) * :customers + c AS n
                FROM generate_series(:first, :last) AS warehouses(w) CROSS JOIN generate_series(1, 10) AS districts(d)
                CROSS JOIN generate_series(1, :customers) AS customers(c)
            ) AS numbered
        ) AS drawn
    ) AS named;
INSERT INTO history
    SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, CURRENT_TIMESTAMP, 10, '123456789012' FROM customer
    WHERE c_w_id BETWEEN :first AND :last;
INSERT INTO stock
    SELECT w, i, 10 + mod(i * 48271 + w * 16807, 91),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '01'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '02'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '03'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '04'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '05'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '06'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '07'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '08'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '09'),
        CAST(i AS varchar(9)) || rpad(CAST(w AS varchar(9)), 24 - length(CAST(i AS varchar(9))), '10'),
        0, 0, 0, CASE WHEN mod(i * 69621 + w, 100003) < 10000 THEN 'ORIGINAL' ELSE '' END
        || rpad(CAST(i AS varchar(20)), CAST(26 + mod(i * 39373, 17) AS integer), '0123456789'), 0, NULL
    FROM generate_series(:first, :last) AS warehouses(w) CROSS JOIN generate_series(CAST(1 AS bigint), :items) AS items(i);
-- One order of each customer, in another order than that of their numbers; the last three of ten
-- aren't delivered.
INSERT INTO orders
    SELECT w, d, o, 1 + mod(o * 1000003, :customers), CURRENT_TIMESTAMP,
        CASE WHEN o <= :customers * 7 / 10 THEN 1 + mod(o * 48271, 10) END,
        5 + mod(((w * 10 + d) * CAST(:customers AS bigint) + o) * 69621, 11), 1, 0, NULL
    FROM generate_series(:first, :last) AS warehouses(w) CROSS JOIN generate_series(1, 10) AS districts(d)
    CROSS JOIN generate_series(CAST(1 AS bigint), :customers) AS numbers(o);
INSERT INTO new_order
    SELECT o_w_id, o_d_id, o_id, 0, NULL FROM orders
    WHERE o_carrier_id IS NULL AND o_w_id BETWEEN :first AND :last;
INSERT INTO order_line
    SELECT o_w_id, o_d_id, o_id, n, 1 + mod((o_id * CAST(16 AS bigint) + n) * 39373 + o_d_id * 7919 + o_w_id, :items),
        o_w_id, CASE WHEN o_carrier_id IS NOT NULL THEN o_entry_d END, 5,
        CASE WHEN o_carrier_id IS NULL THEN (1 + mod((o_id * CAST(16 AS bigint) + n) * 48271 + o_d_id, 999999)) / 100.0 ELSE 0 END,
        '123456789012345678901234'
    FROM orders CROSS JOIN generate_series(1, 15) AS lines(n)
    WHERE n <= o_ol_cnt AND o_w_id BETWEEN :first AND :last;
