CREATE TABLE document (id int PRIMARY KEY, docstatus int NOT NULL);
CREATE TABLE posting (id bigserial PRIMARY KEY, document int NOT NULL);
INSERT INTO document SELECT g, 0 FROM generate_series(1, 4) g;
