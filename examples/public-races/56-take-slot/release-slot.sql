\set w random(1, 2)
WITH free AS (SELECT worker, slots FROM semaphore WHERE worker = :w)
UPDATE semaphore SET slots = free.slots + 1 FROM free WHERE semaphore.worker = free.worker;
