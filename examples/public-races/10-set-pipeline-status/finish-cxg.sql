\set id random(1, 3)
BEGIN;
SELECT (status ->> 'rds')::int AS rds FROM dataset_version WHERE id = :id \gset
UPDATE dataset_version SET status = jsonb_build_object('rds', :rds, 'cxg', 1) WHERE id = :id;
COMMIT;
