-- Bal: the sum of a customer's two accounts.
\set number random(1, :customers)
\if random(1, 100) <= :share
\set number random(1, :hotspot)
\endif
BEGIN;
SELECT customer FROM account WHERE name = 'customer ' || CAST(:number AS varchar(20))
\gset
--+materialize-bw --@ write conflict key=$1 version=$2 value=$3
--+materialize-bw UPDATE conflict SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--@ read saving key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS saved FROM saving WHERE customer = :customer
\gset
--@ read checking key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS checked FROM checking WHERE customer = :customer
\gset
--+promote-bw --@ write checking key=$1 version=$2 value=$3
--+promote-bw UPDATE checking SET version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
COMMIT;
