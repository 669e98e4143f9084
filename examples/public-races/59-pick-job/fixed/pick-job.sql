\set e random(1, 2)
\set free -1
SELECT s AS free FROM generate_series(0, 1) s WHERE NOT EXISTS (SELECT 1 FROM job WHERE entry = :e AND status = 'picked' AND slot = s) ORDER BY s LIMIT 1 \aset
\if :free >= 0
UPDATE job SET status = 'picked', slot = :free WHERE id = (
  SELECT id FROM job WHERE entry = :e AND status = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
\endif
