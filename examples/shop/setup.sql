-- The tables of a small shop. They know nothing of isobench.
DROP TABLE IF EXISTS order_line, visits, member, customer, product;

CREATE TABLE product (
    id int PRIMARY KEY,
    category int NOT NULL,
    price bigint NOT NULL,
    stock int NOT NULL
);
CREATE TABLE customer (
    id int PRIMARY KEY,
    balance bigint NOT NULL
);
CREATE TABLE order_line (
    id bigserial PRIMARY KEY,
    customer int NOT NULL REFERENCES customer,
    product int NOT NULL REFERENCES product,
    quantity int NOT NULL
);
-- No two members ought to have the same telephone number, but no constraint says so.
CREATE TABLE member (
    id bigserial PRIMARY KEY,
    phone bigint NOT NULL
);
CREATE INDEX ON member (phone);
CREATE TABLE visits (
    product int,
    weekday text,
    number bigint NOT NULL,
    PRIMARY KEY (product, weekday)
);

INSERT INTO product SELECT i, i % 4, 5 + i % 7, 1000 FROM generate_series(1, 12) i;
INSERT INTO customer SELECT i, 10000 FROM generate_series(1, 40) i;
INSERT INTO visits SELECT i, day, 0 FROM generate_series(1, 12) i, unnest(ARRAY['Saturday', 'Sunday']) day;
ANALYZE;
