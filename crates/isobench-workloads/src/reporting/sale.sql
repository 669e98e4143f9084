-- A sale at the item's price. Revenues are added in SQL, so that no update is lost at any level.
\set item random(1, :items)
\set department 1 + :item % :departments
BEGIN;
--@ read prices key=$1 version=$2 value=$3
SELECT item, version, writer, price FROM prices WHERE item = :item
\gset
--@ write items key=$1 version=$2 value=$3
UPDATE items SET revenue = revenue + :price, version = version + 1, writer = :attempt_id WHERE id = :item RETURNING id, version, writer;
--@ write departments key=$1 version=$2 value=$3
UPDATE departments SET revenue = revenue + :price, version = version + 1, writer = :attempt_id WHERE id = :department RETURNING id, version, writer;
COMMIT;
