CREATE TABLE idempotency_key (key int PRIMARY KEY, status text NOT NULL);
CREATE TABLE orders (id bigserial PRIMARY KEY, key int NOT NULL);
