DROP TABLE IF EXISTS forks;
CREATE TABLE forks (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    writer bigint
)
--+fillfactor WITH (fillfactor = 50)
;
-- The rows of a group have consecutive numbers.
INSERT INTO forks (id, version) SELECT id, 0 FROM generate_series(1, :groups * :rows) AS numbers(id);
