\set e random(1, 3)
UPDATE execution SET status = 'cancelled' WHERE id = :e;
