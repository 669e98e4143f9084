\set a random(1, 3)
\set me random(1, 1000)
INSERT INTO lease VALUES (:a, :me, 1) ON CONFLICT (action) DO UPDATE SET fence = lease.fence + 1 WHERE lease.holder = excluded.holder;
