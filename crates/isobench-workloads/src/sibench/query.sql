BEGIN;
--@ read sibench key=$1 version=$2 value=$3
SELECT id, version, writer FROM sibench ORDER BY val ASC LIMIT 1;
COMMIT;
