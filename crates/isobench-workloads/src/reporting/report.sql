-- The price list, the revenue of all departments, and then that of their items, in parts.
\set found 0
\set last 0
BEGIN
--+read-only READ ONLY
--+deferrable READ ONLY DEFERRABLE
;
--@ read prices key=$1 version=$2 value=$3
SELECT item, version, writer, price FROM prices;
--@ read departments key=$1 version=$2 value=$3
SELECT id, version, writer, sum(revenue) OVER () AS total FROM departments
\aset
--*parts
--+pause \sleep :pause ms
\set first :last + 1
\set last :items * :nth / :parts
--@ read items key=$1 version=$2 value=$3
SELECT id, version, writer, sum(revenue) OVER () AS part FROM items WHERE id BETWEEN :first AND :last
\aset
\set found :found + :part
--*
--@ holds agreement value=$1
SELECT CAST(:found AS bigint) = CAST(:total AS bigint);
COMMIT;
