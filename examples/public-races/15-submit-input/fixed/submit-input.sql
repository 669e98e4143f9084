\set run random(1, 3)
\set body random(1, 1000000)
BEGIN;
SELECT id FROM runs WHERE id = :run FOR UPDATE;
INSERT INTO run_inputs (run_id, kind, body)
SELECT runs.id, 'revise', 'b' || :body FROM runs
WHERE id = :run AND (SELECT count(*) FROM run_inputs i WHERE i.run_id = runs.id AND i.kind = 'revise') < 3;
COMMIT;
