\set k random(1, 4)
\set v random(1, 1000)
\set new 0
BEGIN;
INSERT INTO item VALUES (:k, :v) ON CONFLICT (key) DO NOTHING RETURNING 1 AS new \aset
\if :new = 1
INSERT INTO created (key) VALUES (:k);
\endif
COMMIT;
