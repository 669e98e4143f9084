CREATE TABLE booking (id bigserial PRIMARY KEY, provider int NOT NULL, slot int4range NOT NULL);
CREATE INDEX ON booking (provider);
