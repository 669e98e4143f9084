\set side random(0, 1)
\set seen 0
BEGIN;
-- A pair of classes. A number of pairs is in use at a time, and each is replaced after a number of
-- transactions.
SELECT nextval('mytab_turns') AS turn
\gset
\set pair :turn / (:pairs * :uses) * :pairs + random(0, :pairs - 1)
-- Two numbers between two fillers, far from those of the preceding pair.
\set first permute(:pair, 20000) * 1000 + 10 + :pair / 20000 * 2
\set mine :first + :side
\set other :first + 1 - :side
--+materialized-conflict --@ write mytab_pairs key=$1 version=$2 value=$3
--+materialized-conflict INSERT INTO mytab_pairs (id, version, writer) VALUES (:pair, 1, :attempt_id)
--+materialized-conflict     ON CONFLICT (id) DO UPDATE SET version = mytab_pairs.version + 1, writer = excluded.writer RETURNING id, version, writer;
-- Counts the rows of one class, and inserts their number into the other.
--@ read-group mytab group=:other key=$1
SELECT id, count(*) OVER () AS seen FROM mytab WHERE class = :other
\aset
--@ insert mytab key=:turn group=:mine
INSERT INTO mytab (class, id, val) VALUES (:mine, :turn, :seen);
COMMIT;
