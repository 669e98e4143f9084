\set o random(1, 3)
\set m random(100, 10000)
BEGIN;
SELECT id FROM organization WHERE id = :o FOR UPDATE;
SELECT count(*) AS members FROM membership WHERE organization = :o \gset
\if :members < 2
INSERT INTO membership (organization, member) VALUES (:o, :m);
\endif
COMMIT;
