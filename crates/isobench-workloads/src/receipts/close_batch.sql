\set till random(1, :tills)
BEGIN;
--@ write control key=$1 version=$2 value=$3
UPDATE control SET batch = batch + 1, version = version + 1, writer = :attempt_id WHERE id = :till RETURNING id, version, writer;
COMMIT;
