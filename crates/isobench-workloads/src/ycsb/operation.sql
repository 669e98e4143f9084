\set number 1 + (:rank - 1 + :shift) % :records
--+latest \set number :newest - (:rank - 1 + :shift) % :records
\set id :number * 2654435761 % 4294967296
\set kind random(1, :reads + :updates + :inserts + :scans + :modifications)
\if :kind <= :reads
--+reads --@ read usertable key=:id version=$2 value=$3
--+reads SELECT * FROM usertable WHERE id = :id;
\elif :kind <= :reads + :updates
--+updates --@ write usertable key=$1 version=$2 value=$3
--+updates UPDATE usertable SET field1 = lpad(CAST(:attempt_id AS varchar(20)), :length, '.'), version = version + 1, writer = :attempt_id WHERE id = :id RETURNING id, version, writer;
\elif :kind <= :reads + :updates + :inserts
--+inserts --@ write usertable key=$1 version=$2 value=$3
--+inserts INSERT INTO usertable (id, version, writer, number, previous)
--+inserts     SELECT number * 2654435761 % 4294967296, 1, CAST(:attempt_id AS bigint), number, CAST(:inserted AS bigint)
--+inserts     FROM (SELECT CAST(:records AS bigint) + nextval('usertable_numbers') AS number) AS next
--+inserts     RETURNING id, version, writer, number AS inserted
--+inserts \gset
\elif :kind <= :reads + :updates + :inserts + :scans
--+scans -- As many records as the scan has to find, on average, since their keys are evenly spread.
--+scans \set last :id + random(1, :longest) * (4294967296 / :records) - 1
--+scans --@ read usertable key=$1 version=$2 value=$3
--+scans SELECT * FROM usertable WHERE id BETWEEN :id AND :last;
\else
--+modifications \set val 0
--+modifications --@ read usertable key=:id version=$2 value=$3
--+modifications SELECT id, version, writer, val FROM usertable WHERE id = :id
--+for-update --+modifications FOR UPDATE
--+modifications \aset
--+modifications \set val :val + 1
--+modifications --@ write usertable key=$1 version=$2 value=$3
--+modifications UPDATE usertable SET val = :val, modified = modified + 1, version = version + 1, writer = :attempt_id WHERE id = :id RETURNING id, version, writer;
\endif
