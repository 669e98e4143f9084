\set e random(1, 3)
\set n random(1, 1000)
UPDATE execution SET steps = steps + 1, trace = trace || :n WHERE id = :e AND status <> 'cancelled';
