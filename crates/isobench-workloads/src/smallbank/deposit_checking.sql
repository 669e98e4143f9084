-- DC: a deposit to a checking account.
\set number random(1, :customers)
\if random(1, 100) <= :share
\set number random(1, :hotspot)
\endif
\set amount random(1, 100)
BEGIN;
SELECT customer FROM account WHERE name = 'customer ' || CAST(:number AS varchar(20))
\gset
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = balance + :amount, inflow = inflow + :amount, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
COMMIT;
