\set a random(1, 2)
SELECT count(*) AS others FROM account WHERE admin AND id <> :a \gset
\if :others > 0
DELETE FROM account WHERE id = :a;
\endif
