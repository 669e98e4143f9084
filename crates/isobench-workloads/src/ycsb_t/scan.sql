-- As many accounts as the scan has to find, on average, since their keys are evenly spread.
\set last :id + random(1, :longest) * (4294967296 / :records) - 1
BEGIN;
--@ read economy key=$1 version=$2 value=$3
SELECT id, version, writer, balance, open FROM economy WHERE id BETWEEN :id AND :last;
COMMIT;
