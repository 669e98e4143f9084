CREATE TABLE voucher (id int PRIMARY KEY, max_usages int NOT NULL);
CREATE TABLE cart_position (id bigserial PRIMARY KEY, voucher int NOT NULL REFERENCES voucher, cart int NOT NULL);
CREATE INDEX ON cart_position (voucher);
INSERT INTO voucher SELECT g, 2 FROM generate_series(1, 3) g;
