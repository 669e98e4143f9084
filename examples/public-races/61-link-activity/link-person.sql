\set a random(1, 2)
\set t random(1, 1000000)
INSERT INTO activity_link (activity, target) SELECT :a, :t WHERE (SELECT count(*) FROM activity_link WHERE activity = :a) < 3;
