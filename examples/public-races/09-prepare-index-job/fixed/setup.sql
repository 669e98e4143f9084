CREATE TABLE index_job (id bigserial PRIMARY KEY, entity int NOT NULL, partition int, started int NOT NULL);
CREATE UNIQUE INDEX ON index_job (entity, coalesce(partition, -1));
