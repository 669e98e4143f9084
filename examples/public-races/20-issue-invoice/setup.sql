CREATE TABLE series (id int PRIMARY KEY, last int NOT NULL);
CREATE TABLE invoice (id int PRIMARY KEY, status text NOT NULL, number int);
CREATE TABLE tax_record (id bigserial PRIMARY KEY, invoice int NOT NULL REFERENCES invoice, number int NOT NULL);
INSERT INTO series VALUES (1, 41);
INSERT INTO invoice SELECT g, 'draft', NULL FROM generate_series(1, 4) g;
