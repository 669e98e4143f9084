CREATE TABLE variant (id int PRIMARY KEY, stock int NOT NULL);
CREATE TABLE orders (id bigserial PRIMARY KEY, variant int NOT NULL REFERENCES variant, quantity int NOT NULL);
INSERT INTO variant SELECT g, 3 FROM generate_series(1, 3) g;
