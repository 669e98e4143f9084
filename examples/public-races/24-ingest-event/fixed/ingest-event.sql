\set o random(1, 4)
\set c random(1, 1000000)
BEGIN;
SELECT pg_advisory_xact_lock(1, :o);
SELECT count(*) AS known FROM event WHERE connection = 1 AND origin = :o \gset
\if :known = 0
INSERT INTO event (connection, origin, content) VALUES (1, :o, 'text ' || :c);
\endif
COMMIT;
