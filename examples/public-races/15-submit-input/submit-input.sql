\set run random(1, 3)
\set body random(1, 1000000)
WITH locked AS (SELECT id FROM runs WHERE id = :run FOR UPDATE)
INSERT INTO run_inputs (run_id, kind, body)
SELECT locked.id, 'revise', 'b' || :body FROM locked
WHERE (SELECT count(*) FROM run_inputs i WHERE i.run_id = locked.id AND i.kind = 'revise') < 3;
