-- Amg: moves all of a customer's money to the checking account of another customer.
\set number random(1, :customers)
\if random(1, 100) <= :share
\set number random(1, :hotspot)
\endif
\set other random(1, :customers)
\if random(1, 100) <= :share
\set other random(1, :hotspot)
\endif
\if :other = :number
\set other :number % :customers + 1
\endif
BEGIN;
SELECT customer FROM account WHERE name = 'customer ' || CAST(:number AS varchar(20))
\gset
SELECT customer AS payee FROM account WHERE name = 'customer ' || CAST(:other AS varchar(20))
\gset
--@ read saving key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS saved FROM saving WHERE customer = :customer
\gset
--@ read checking key=$1 version=$2 value=$3
SELECT customer, version, writer, balance AS checked FROM checking WHERE customer = :customer
\gset
\set sum :saved + :checked
--@ write saving key=$1 version=$2 value=$3
UPDATE saving SET balance = 0, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
-- In ascending order, which avoids deadlocks between two of these transactions.
\if :customer < :payee
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = 0, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = balance + :sum, version = version + 1, writer = :attempt_id WHERE customer = :payee RETURNING customer, version, writer;
\else
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = balance + :sum, version = version + 1, writer = :attempt_id WHERE customer = :payee RETURNING customer, version, writer;
--@ write checking key=$1 version=$2 value=$3
UPDATE checking SET balance = 0, version = version + 1, writer = :attempt_id WHERE customer = :customer RETURNING customer, version, writer;
\endif
COMMIT;
