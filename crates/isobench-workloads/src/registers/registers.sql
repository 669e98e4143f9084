-- The registers are divided into as many parts as there are operations, one for each operation. So
-- registers are read and written in ascending order, and deadlocks are very rare.
\set part :keys / :operations
\set spot greatest(1, :part * :hot / 100)
--*operations
\if :zipfian > 1
\set key:nth random_zipfian(1, :part, greatest(:zipfian, 1.001)) + (:nth - 1) * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key:nth random(1, :spot) + (:nth - 1) * :part
\else
\set key:nth random(1, :part) + (:nth - 1) * :part
\endif
\set writes:nth random(1, 100) <= :writes
--*
BEGIN;
--*operations
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value:nth FROM registers WHERE id = :key:nth
--+for-update FOR UPDATE
\gset
--*
--*operations
\if :writes:nth
\set value:nth :value:nth + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value:nth WHERE id = :key:nth RETURNING id, version, writer;
\endif
--*
COMMIT;
