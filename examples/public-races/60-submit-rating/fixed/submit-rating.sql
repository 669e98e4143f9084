\set d random(1, 2)
\set s random(1, 5)
BEGIN;
SELECT 1 FROM driver WHERE id = :d FOR UPDATE;
INSERT INTO rating (driver, stars) VALUES (:d, :s);
SELECT round(avg(stars), 2) AS average FROM rating WHERE driver = :d \gset
UPDATE driver SET stars = :average WHERE id = :d;
COMMIT;
