DROP TABLE IF EXISTS shops;
CREATE TABLE shops (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    revenue bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
-- Fillers: shops and products that are never ordered from. Without them a few shops would fit on
-- one page, which PostgreSQL reads sequentially, taking a predicate lock on the whole table, so
-- that at serializable orders of different shops would conflict.
INSERT INTO shops (id, version, revenue) SELECT -id, 0, 0 FROM generate_series(1, 1000) AS numbers(id);
INSERT INTO shops (id, version, revenue) SELECT id, 0, 0 FROM generate_series(1, :shops) AS numbers(id);
DROP TABLE IF EXISTS products;
CREATE TABLE products (
    id bigint PRIMARY KEY,
    shop bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint,
    price bigint NOT NULL,
    stock bigint NOT NULL,
    -- Computed in SQL, so that its updates can't be lost: stock and revenue have to agree with it.
    sold bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 50)
;
INSERT INTO products (id, shop, version, price, stock, sold)
    SELECT -id, 0, 0, 1, :initial, 0 FROM generate_series(1, 10000) AS numbers(id);
INSERT INTO products (id, shop, version, price, stock, sold)
    SELECT (shop - 1) * :products + number, shop, 0, 10 + mod(number * 7, 90), :initial, 0
    FROM generate_series(1, :shops) AS a(shop), generate_series(1, :products) AS b(number);
