DROP TABLE IF EXISTS registers;
CREATE TABLE registers (id bigint PRIMARY KEY, version bigint NOT NULL, writer bigint) WITH (fillfactor = 10);
INSERT INTO registers SELECT id, 0, NULL FROM generate_series(1, 1000) AS numbers(id);
