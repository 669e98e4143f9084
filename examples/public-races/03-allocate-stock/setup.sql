CREATE TABLE stock_level (variant int NOT NULL, location int NOT NULL, on_hand int NOT NULL, allocated int NOT NULL, PRIMARY KEY (variant, location));
CREATE TABLE allocation (id bigserial PRIMARY KEY, variant int NOT NULL, quantity int NOT NULL);
INSERT INTO stock_level SELECT v, l, 2, 1 FROM generate_series(1, 2) v, generate_series(1, 2) l;
