\set k random(1, 4)
\set v random(1, 1000)
\set found 0
BEGIN;
SELECT 1 AS found FROM item WHERE key = :k FOR UPDATE \aset
\if :found = 0
INSERT INTO item VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
INSERT INTO created (key) VALUES (:k);
\endif
COMMIT;
