\set j random(1, 12)
UPDATE job SET status = 'queued', slot = NULL WHERE id = :j AND status = 'picked';
