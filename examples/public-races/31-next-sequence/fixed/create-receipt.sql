\set s random(1, 2)
BEGIN;
UPDATE sequence SET next = next + step WHERE name = :s RETURNING next \gset
INSERT INTO receipt (series, number) VALUES (:s, :next);
COMMIT;
