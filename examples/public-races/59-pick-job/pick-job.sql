\set e random(1, 2)
UPDATE job SET status = 'picked' WHERE id = (
  SELECT id FROM job WHERE entry = :e AND status = 'queued'
  AND (SELECT count(*) FROM job r WHERE r.entry = :e AND r.status = 'picked') < 2
  ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
