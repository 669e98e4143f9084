-- All rows of a group, one after the other, in ascending or descending order.
\set row random(0, :groups - 1) * :rows + 1
\set step 1
\if random(0, 1) = 1
\set row :row + :rows - 1
\set step -1
\endif
BEGIN;
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\if :rows >= 3
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
\if :rows >= 4
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
\if :rows >= 5
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
\if :rows >= 6
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
\if :rows >= 7
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
\if :rows >= 8
\set row :row + :step
--@ read forks key=$1 version=$2 value=$3
SELECT id, version, writer FROM forks WHERE id = :row;
\endif
COMMIT;
