\set e random(1, 4)
UPDATE execution SET status = 'cancelled' WHERE id = :e AND status = 'pending';
