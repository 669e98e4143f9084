CREATE TABLE booking (id bigserial PRIMARY KEY, provider int NOT NULL, slot int4range NOT NULL,
  CONSTRAINT no_overlap EXCLUDE USING gist (int4range(provider * 1000 + lower(slot), provider * 1000 + upper(slot)) WITH &&));
CREATE INDEX ON booking (provider);
