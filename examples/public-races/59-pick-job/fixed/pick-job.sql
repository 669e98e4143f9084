\set e random(1, 2)
WITH free AS (
  SELECT min(s) AS slot FROM generate_series(0, 1) s
  WHERE NOT EXISTS (SELECT 1 FROM job WHERE entry = :e AND status = 'picked' AND slot = s))
UPDATE job SET status = 'picked', slot = free.slot FROM free WHERE free.slot IS NOT NULL AND job.id = (
  SELECT id FROM job WHERE entry = :e AND status = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
