CREATE TABLE payment (id int PRIMARY KEY, amount int NOT NULL);
CREATE TABLE refund (id bigserial PRIMARY KEY, payment int NOT NULL REFERENCES payment, amount int NOT NULL);
CREATE INDEX ON refund (payment);
INSERT INTO payment SELECT g, 100 FROM generate_series(1, 3) g;
