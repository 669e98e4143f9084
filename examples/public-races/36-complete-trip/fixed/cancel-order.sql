\set o random(1, 4)
UPDATE orders SET status = 'cancelled' WHERE id = :o AND status NOT IN ('cancelled', 'paid');
