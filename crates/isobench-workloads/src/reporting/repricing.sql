\set item random(1, :items)
\set price random(50, 150)
BEGIN;
--@ write prices key=$1 version=$2 value=$3
UPDATE prices SET price = :price, version = version + 1, writer = :attempt_id WHERE item = :item RETURNING item, version, writer;
COMMIT;
