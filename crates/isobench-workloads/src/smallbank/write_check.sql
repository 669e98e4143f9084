-- WC: a check. If it exceeds the sum of both accounts, it costs 1 more.
\set number random(1, :customers)
\if random(1, 100) <= :share
\set number random(1, :hotspot)
\endif
\set amount random(1, 100)
BEGIN;
SELECT customer FROM account WHERE name = 'customer ' || CAST(:number AS varchar(20))
\gset
--+materialize-wt --@ write conflict key=$1 version=$2 value=$3
--+materialize-wt UPDATE conflict SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--+materialize-bw --@ write conflict key=$1 version=$2 value=$3
--+materialize-bw UPDATE conflict SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--@ read saving key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS saved FROM saving WHERE customer = :customer
\gset
--@ read checking key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS checked FROM checking WHERE customer = :customer
\gset
\if :saved + :checked < :amount
\set amount :amount + 1
\endif
--+promote-wt --@ write saving key=$1 version=$2 value=$3
--+promote-wt UPDATE saving SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = balance - :amount, inflow = inflow - :amount, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
COMMIT;
