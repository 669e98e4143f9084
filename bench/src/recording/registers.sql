\set first random(1, 500)
\set second random(501, 1000)
BEGIN;
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer FROM registers WHERE id = :first;
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer FROM registers WHERE id = :second;
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :first RETURNING id, version, writer;
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :second RETURNING id, version, writer;
COMMIT;
