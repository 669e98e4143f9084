\set a random(1, 2)
\set t random(1, 1000000)
BEGIN;
SELECT count(*) AS links FROM activity_link WHERE activity = :a \gset
\if :links < 3
INSERT INTO activity_link (activity, target) VALUES (:a, :t);
\endif
COMMIT;
