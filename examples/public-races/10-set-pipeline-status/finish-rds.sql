\set id random(1, 3)
BEGIN;
SELECT (status ->> 'cxg')::int AS cxg FROM dataset_version WHERE id = :id \gset
UPDATE dataset_version SET status = jsonb_build_object('rds', 1, 'cxg', :cxg) WHERE id = :id;
COMMIT;
