\set s random(1, 2)
BEGIN;
SELECT next, step FROM sequence WHERE name = :s \gset
UPDATE sequence SET next = :next + :step WHERE name = :s;
INSERT INTO receipt (series, number) VALUES (:s, :next + :step);
COMMIT;
