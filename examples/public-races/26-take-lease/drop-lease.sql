\set a random(1, 3)
DELETE FROM lease WHERE action = :a;
