\set v random(1, 3)
\set s random(1, 20)
BEGIN;
SELECT count(*) AS clashes FROM booking WHERE venue = :v AND starts < :s + 3 AND ends > :s \gset
\if :clashes = 0
INSERT INTO booking (venue, starts, ends) VALUES (:v, :s, :s + 3);
\endif
COMMIT;
