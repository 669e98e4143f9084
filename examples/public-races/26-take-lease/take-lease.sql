\set a random(1, 3)
\set me random(1, 1000)
\set held 0
BEGIN;
SELECT 1 AS held FROM lease WHERE action = :a AND holder <> :me FOR UPDATE \aset
\if :held = 0
INSERT INTO lease VALUES (:a, :me, 1) ON CONFLICT (action) DO UPDATE SET holder = excluded.holder, fence = lease.fence + 1;
\endif
COMMIT;
