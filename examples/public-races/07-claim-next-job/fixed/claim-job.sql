\set job 0
UPDATE job SET status = 'processing' WHERE id = (SELECT id FROM job WHERE status = 'pending' ORDER BY created LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id AS job \aset
\if :job > 0
INSERT INTO run (job) VALUES (:job);
\endif
