\set job 0
SELECT id AS job FROM job WHERE status = 'pending' ORDER BY created LIMIT 1 \aset
\if :job > 0
UPDATE job SET status = 'processing' WHERE id = :job;
INSERT INTO run (job) VALUES (:job);
\endif
