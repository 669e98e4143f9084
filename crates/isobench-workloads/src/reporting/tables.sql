DROP TABLE IF EXISTS departments;
CREATE TABLE departments (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    revenue bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO departments (id, version, revenue) SELECT id, 0, 0 FROM generate_series(1, :departments) AS numbers(id);
DROP TABLE IF EXISTS prices;
CREATE TABLE prices (
    item bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    price bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO prices (item, version, price) SELECT item, 0, 100 FROM generate_series(1, :items) AS numbers(item);
DROP TABLE IF EXISTS items;
CREATE TABLE items (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    department bigint NOT NULL,
    revenue bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO items (id, version, department, revenue)
    SELECT id, 0, 1 + id % :departments, 0 FROM generate_series(1, :items) AS numbers(id);
