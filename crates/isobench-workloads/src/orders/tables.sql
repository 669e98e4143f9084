DROP TABLE IF EXISTS shops;
CREATE TABLE shops (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    revenue bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
-- Shops and products that nobody orders from. Without them few shops would be one page, which PostgreSQL reads sequentially, and then
-- its predicate lock is on the whole table: at serializable orders of different shops would be in conflict.
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
    -- Counted in SQL, so that no update of it is lost: what stock and revenue have to agree with.
    sold bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 50)
;
INSERT INTO products (id, shop, version, price, stock, sold)
    SELECT -id, 0, 0, 1, :initial, 0 FROM generate_series(1, 10000) AS numbers(id);
INSERT INTO products (id, shop, version, price, stock, sold)
    SELECT (shop - 1) * :products + number, shop, 0, 10 + mod(number * 7, 90), :initial, 0
    FROM generate_series(1, :shops) AS a(shop), generate_series(1, :products) AS b(number);
