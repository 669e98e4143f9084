\set row random(1, :groups * :rows)
BEGIN;
--@ write forks key=$1 version=$2 value=$3
UPDATE forks SET version = version + 1, writer = :attempt_id WHERE id = :row RETURNING id, version, writer;
COMMIT;
