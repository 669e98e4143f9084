\set id random(1, 4)
SELECT count(*) AS pending FROM job WHERE id = :id AND status = 'pending' \gset
\if :pending = 1
UPDATE job SET status = 'processing', attempts = attempts + 1 WHERE id = :id;
INSERT INTO performed (job) VALUES (:id);
\endif
