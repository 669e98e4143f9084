CREATE TABLE index_job (id bigserial PRIMARY KEY, entity int NOT NULL, partition int, started int NOT NULL);
CREATE INDEX ON index_job (entity);
