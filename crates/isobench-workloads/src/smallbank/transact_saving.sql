-- TS: a deposit to a saving account, or a withdrawal if the balance suffices.
\set number random(1, :customers)
\if random(1, 100) <= :share
\set number random(1, :hotspot)
\endif
\set amount random(-100, 100)
BEGIN;
SELECT customer FROM account WHERE name = 'customer ' || CAST(:number AS varchar(20))
\gset
--+materialize-wt --@ write conflict key=$1 version=$2 value=$3
--+materialize-wt UPDATE conflict SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--@ read saving key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS saved FROM saving WHERE customer = :customer
\gset
\if :saved + :amount >= 0
--@ write saving key=$1 version=$2 value=$3
UPDATE saving SET balance = balance + :amount, inflow = inflow + :amount, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
\endif
COMMIT;
