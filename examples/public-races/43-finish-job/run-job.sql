\set j random(1, 2)
UPDATE job SET running = 1, claims = claims + 1 WHERE id = :j RETURNING claims AS mine \gset
UPDATE job SET running = 0, finished_by = :mine WHERE id = :j;
