-- Two scans, one of each half of the accounts. If they see the same state, they add up to the
-- total.
\set half :accounts / 2
\set total :accounts * :balance
BEGIN;
--@ read accounts key=$1 version=$2 value=$3
SELECT id, version, writer, sum(balance) OVER () AS below
FROM (
    SELECT id, version, writer, balance FROM accounts WHERE id <= :half ORDER BY id
--+for-update     FOR SHARE
) AS lower_half
\aset
--@ read accounts key=$1 version=$2 value=$3
--@ holds total value=$4
SELECT id, version, writer, sum(balance) OVER () = CAST(:total AS bigint) - CAST(:below AS bigint)
FROM (
    SELECT id, version, writer, balance FROM accounts WHERE id > :half ORDER BY id
--+for-update     FOR SHARE
) AS upper_half;
COMMIT;
