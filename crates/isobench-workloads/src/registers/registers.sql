-- The registers are divided into as many parts as there are operations, one for each operation. So
-- registers are read and written in ascending order, and deadlocks are very rare.
\set part :keys / :operations
\set spot greatest(1, :part * :hot / 100)
\if :zipfian > 1
\set key1 random_zipfian(1, :part, greatest(:zipfian, 1.001))
\elif :hot > 0 and random(1, 100) <= 90
\set key1 random(1, :spot)
\else
\set key1 random(1, :part)
\endif
\set writes1 random(1, 100) <= :writes
\if :operations >= 2
\if :zipfian > 1
\set key2 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 1 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key2 random(1, :spot) + 1 * :part
\else
\set key2 random(1, :part) + 1 * :part
\endif
\set writes2 random(1, 100) <= :writes
\endif
\if :operations >= 3
\if :zipfian > 1
\set key3 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 2 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key3 random(1, :spot) + 2 * :part
\else
\set key3 random(1, :part) + 2 * :part
\endif
\set writes3 random(1, 100) <= :writes
\endif
\if :operations >= 4
\if :zipfian > 1
\set key4 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 3 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key4 random(1, :spot) + 3 * :part
\else
\set key4 random(1, :part) + 3 * :part
\endif
\set writes4 random(1, 100) <= :writes
\endif
\if :operations >= 5
\if :zipfian > 1
\set key5 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 4 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key5 random(1, :spot) + 4 * :part
\else
\set key5 random(1, :part) + 4 * :part
\endif
\set writes5 random(1, 100) <= :writes
\endif
\if :operations >= 6
\if :zipfian > 1
\set key6 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 5 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key6 random(1, :spot) + 5 * :part
\else
\set key6 random(1, :part) + 5 * :part
\endif
\set writes6 random(1, 100) <= :writes
\endif
\if :operations >= 7
\if :zipfian > 1
\set key7 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 6 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key7 random(1, :spot) + 6 * :part
\else
\set key7 random(1, :part) + 6 * :part
\endif
\set writes7 random(1, 100) <= :writes
\endif
\if :operations >= 8
\if :zipfian > 1
\set key8 random_zipfian(1, :part, greatest(:zipfian, 1.001)) + 7 * :part
\elif :hot > 0 and random(1, 100) <= 90
\set key8 random(1, :spot) + 7 * :part
\else
\set key8 random(1, :part) + 7 * :part
\endif
\set writes8 random(1, 100) <= :writes
\endif
BEGIN;
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value1 FROM registers WHERE id = :key1
--+for-update FOR UPDATE
\gset
\if :operations >= 2
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value2 FROM registers WHERE id = :key2
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 3
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value3 FROM registers WHERE id = :key3
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 4
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value4 FROM registers WHERE id = :key4
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 5
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value5 FROM registers WHERE id = :key5
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 6
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value6 FROM registers WHERE id = :key6
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 7
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value7 FROM registers WHERE id = :key7
--+for-update FOR UPDATE
\gset
\endif
\if :operations >= 8
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer, val AS value8 FROM registers WHERE id = :key8
--+for-update FOR UPDATE
\gset
\endif
\if :writes1
\set value1 :value1 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value1 WHERE id = :key1 RETURNING id, version, writer;
\endif
\if :operations >= 2 and :writes2
\set value2 :value2 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value2 WHERE id = :key2 RETURNING id, version, writer;
\endif
\if :operations >= 3 and :writes3
\set value3 :value3 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value3 WHERE id = :key3 RETURNING id, version, writer;
\endif
\if :operations >= 4 and :writes4
\set value4 :value4 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value4 WHERE id = :key4 RETURNING id, version, writer;
\endif
\if :operations >= 5 and :writes5
\set value5 :value5 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value5 WHERE id = :key5 RETURNING id, version, writer;
\endif
\if :operations >= 6 and :writes6
\set value6 :value6 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value6 WHERE id = :key6 RETURNING id, version, writer;
\endif
\if :operations >= 7 and :writes7
\set value7 :value7 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value7 WHERE id = :key7 RETURNING id, version, writer;
\endif
\if :operations >= 8 and :writes8
\set value8 :value8 + 1
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id, val = :value8 WHERE id = :key8 RETURNING id, version, writer;
\endif
COMMIT;
