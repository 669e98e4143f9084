DROP TABLE IF EXISTS forks;
CREATE TABLE forks (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 10)
;
-- The rows of a group have consecutive numbers.
INSERT INTO forks (id, version) SELECT id, 0 FROM generate_series(1, :groups * :rows) AS numbers(id);
