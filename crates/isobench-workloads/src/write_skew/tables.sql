DROP TABLE IF EXISTS doctors;
CREATE TABLE doctors (
    id bigint PRIMARY KEY,
    shift bigint NOT NULL,
    version bigint NOT NULL,
    writer bigint,
    on_call int NOT NULL,
    alarms bigint NOT NULL
)
--+fillfactor WITH (fillfactor = 10)
;
-- The doctors of a shift have consecutive numbers, so that the primary key finds them.
INSERT INTO doctors (id, shift, version, on_call, alarms)
    SELECT shift * :doctors + doctor, shift + 1, 0, 1, 0
    FROM generate_series(0, :shifts - 1) AS a(shift), generate_series(1, :doctors) AS b(doctor);
DROP TABLE IF EXISTS shifts;
--+materialized-conflict CREATE TABLE shifts (id bigint PRIMARY KEY, version bigint NOT NULL, writer bigint);
--+materialized-conflict INSERT INTO shifts (id, version) SELECT id, 0 FROM generate_series(1, :shifts) AS numbers(id);
