CREATE TABLE sequence (name int PRIMARY KEY, next int NOT NULL, step int NOT NULL);
CREATE TABLE receipt (id bigserial PRIMARY KEY, series int NOT NULL, number int NOT NULL);
INSERT INTO sequence SELECT g, 0, 1 FROM generate_series(1, 2) g;
