\set item random(1, :items)
BEGIN;
--@ write sibench key=$1 version=$2 value=$3
UPDATE sibench SET val = val + 1, version = version + 1, writer = :attempt_id WHERE id = :item RETURNING id, version, writer;
COMMIT;
