DROP TABLE IF EXISTS sibench;
CREATE TABLE sibench (
    id bigint PRIMARY KEY,
    val bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 10)
;
INSERT INTO sibench (id, val, version) SELECT id, id, 0 FROM generate_series(1, :items) AS numbers(id);
