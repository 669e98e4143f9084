DROP TABLE IF EXISTS registers;
CREATE TABLE registers (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint,
    val bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO registers (id, version, val) SELECT id, 0, 0 FROM generate_series(1, :keys) AS numbers(id);
