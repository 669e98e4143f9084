CREATE TABLE voucher (id int PRIMARY KEY, max_usages int NOT NULL, redeemed int NOT NULL);
CREATE TABLE position (id bigserial PRIMARY KEY, voucher int NOT NULL REFERENCES voucher, attendee int NOT NULL);
INSERT INTO voucher SELECT g, 2, 0 FROM generate_series(1, 3) g;
