BEGIN;
--@ read economy key=$1 version=$2 value=$3
SELECT id, version, writer, balance, open FROM economy WHERE id = :id;
COMMIT;
