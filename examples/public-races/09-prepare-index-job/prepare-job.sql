\set e random(1, 3)
BEGIN;
SELECT count(*) AS jobs FROM index_job WHERE entity = :e AND partition IS NULL \gset
\if :jobs > 0
UPDATE index_job SET started = started + 1 WHERE entity = :e AND partition IS NULL;
\else
INSERT INTO index_job (entity, partition, started) VALUES (:e, NULL, 1);
\endif
COMMIT;
