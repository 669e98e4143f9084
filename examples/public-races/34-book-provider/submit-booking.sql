\set p random(1, 3)
\set s random(1, 20)
BEGIN;
SELECT count(*) AS clashes FROM booking WHERE provider = :p AND slot && int4range(:s, :s + 3) \gset
\if :clashes = 0
INSERT INTO booking (provider, slot) VALUES (:p, int4range(:s, :s + 3));
\endif
COMMIT;
