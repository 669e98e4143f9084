-- psql 1
CREATE TABLE keyed (k int4range NOT NULL);
INSERT INTO keyed SELECT int4range(i, i + 1) FROM generate_series(1, 5000) i;
CREATE INDEX ON keyed USING gist (k);
ANALYZE keyed;
SET enable_seqscan = off;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM keyed WHERE k && int4range(50000, 50001);
-- psql 2
SET enable_seqscan = off;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM keyed WHERE k && int4range(60000, 60001);
-- psql 1
INSERT INTO keyed VALUES (int4range(60000, 60001));
-- psql 2
INSERT INTO keyed VALUES (int4range(50000, 50001));
COMMIT; -- ought to fail here, or the next one
-- psql 1
COMMIT;
DROP TABLE keyed;
