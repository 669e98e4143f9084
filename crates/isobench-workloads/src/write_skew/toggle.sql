\set shift random(1, :shifts)
\set last :shift * :doctors
\set first :last - :doctors + 1
\set doctor random(:first, :last)
BEGIN;
--+materialized-conflict --@ write shifts key=$1 version=$2 value=$3
--+materialized-conflict UPDATE shifts SET version = version + 1, writer = :attempt_id WHERE id = :shift RETURNING id, version, writer;
-- The whole shift: is this doctor on call, is another one, is anyone?
--@ read doctors key=$1 version=$2 value=$3
--@ holds shift-covered value=$6
SELECT id, version, writer,
    sum(CASE WHEN id = :doctor THEN on_call ELSE 0 END) OVER () AS mine,
    sum(CASE WHEN id = :doctor THEN 0 ELSE on_call END) OVER () AS others,
    sum(on_call) OVER () > 0 AS covered
FROM (
    SELECT id, version, writer, on_call FROM doctors WHERE id BETWEEN :first AND :last ORDER BY id
--+for-update     FOR UPDATE
) AS shift
\aset
\if :mine = 0
-- Back on call. A shift that was found uncovered is recorded.
\set alarm CASE WHEN :others = 0 THEN 1 ELSE 0 END
--@ write doctors key=$1 version=$2 value=$3
UPDATE doctors SET version = version + 1, writer = :attempt_id, on_call = 1, alarms = alarms + :alarm WHERE id = :doctor RETURNING id, version, writer;
\elif :others > 0
-- Off call, because another doctor is on call.
--@ write doctors key=$1 version=$2 value=$3
UPDATE doctors SET version = version + 1, writer = :attempt_id, on_call = 0 WHERE id = :doctor RETURNING id, version, writer;
\endif
COMMIT;
