CREATE TABLE setting (key text PRIMARY KEY, value int NOT NULL);
CREATE TABLE invoice (id bigserial PRIMARY KEY, number int NOT NULL);
INSERT INTO setting VALUES ('invoice_number', 41);
