\set run random(1, 3)
BEGIN;
SELECT id FROM runs WHERE id = :run FOR UPDATE;
INSERT INTO run_inputs (run_id, kind, body)
SELECT runs.id, 'revise', 'y' FROM runs
WHERE id = :run AND (SELECT count(*) FROM run_inputs i WHERE i.run_id = runs.id AND i.kind = 'revise') < 3;
COMMIT;
