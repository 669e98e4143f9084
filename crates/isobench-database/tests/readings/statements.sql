SELECT 1
SELECT $1 + 1 AS ":x"
SELECT id FROM doctors WHERE id = $1
SELECT * FROM doctors
SELECT count(*) FROM doctors WHERE on_call
SELECT d FROM doctors d
SELECT ctid, xmin FROM doctors
WITH doctors AS (SELECT * FROM doctors WHERE on_call) SELECT count(*) FROM doctors
WITH d AS MATERIALIZED (SELECT id FROM doctors) SELECT id FROM d
SELECT (SELECT count(*) FROM doctors WHERE on_call) FROM (WITH doctors AS (SELECT 1) SELECT * FROM doctors) z
SELECT s.total FROM doctors AS s(i, total, o) WHERE s.i = 1
SELECT count(*) FROM on_call_ids()
SELECT on_call_count() + 1
SELECT d.on_call_of FROM doctors d
SELECT $1 ### 2
SELECT id FROM doctors WHERE shift ### 3
SELECT id FROM doctors WHERE shift IN (1, 2) OR shift BETWEEN $1 AND $2 OR shift IS NULL
SELECT id FROM doctors WHERE (id, shift) = ($1, $2)
SELECT id FROM doctors WHERE (id, shift) > ($1, $2) ORDER BY shift DESC, id LIMIT 1
SELECT id FROM doctors WHERE id = ANY ($1)
SELECT id FROM doctors WHERE EXISTS (SELECT FROM log WHERE log.doctor = doctors.id)
SELECT id FROM doctors WHERE id NOT IN (SELECT doctor FROM log)
SELECT d.id, l.note FROM doctors d JOIN log l ON l.doctor = d.id
SELECT d.id FROM doctors d LEFT JOIN log l ON l.doctor = d.id WHERE l.doctor IS NULL
SELECT a.id FROM doctors a JOIN doctors b USING (shift)
SELECT a.id FROM doctors a NATURAL JOIN doctors b
SELECT id, x.n FROM doctors, LATERAL (SELECT count(*) AS n FROM log WHERE doctor = doctors.id) x
SELECT id FROM doctors UNION ALL SELECT doctor FROM log
SELECT id FROM doctors EXCEPT SELECT doctor FROM log ORDER BY 1
SELECT shift, count(*), sum(id) FILTER (WHERE on_call) FROM doctors GROUP BY shift HAVING count(*) > 1
SELECT shift, on_call, count(*) FROM doctors GROUP BY GROUPING SETS ((shift), (on_call), ())
SELECT DISTINCT ON (shift) id FROM doctors ORDER BY shift, id
SELECT id, row_number() OVER (PARTITION BY shift ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM doctors
SELECT CASE WHEN on_call THEN 1 ELSE coalesce(shift, 0) END, nullif(shift, 1), greatest(id, shift) FROM doctors
SELECT id FROM doctors WHERE shift IS DISTINCT FROM $1 AND on_call IS NOT TRUE
SELECT ARRAY(SELECT id FROM doctors), ARRAY[1, $1], ROW(1, 2), (ARRAY[1, 2])[1]
SELECT shift::text, '7'::int, $1::text::numeric, current_date, current_user FROM doctors
SELECT note COLLATE "C" FROM log ORDER BY note COLLATE "C"
SELECT * FROM generate_series(1, 3) WITH ORDINALITY g(n, o)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, t)
VALUES ($1), (2)
TABLE doctors
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r
WITH RECURSIVE r AS (SELECT id FROM doctors UNION SELECT doctor FROM log JOIN r ON true) SEARCH DEPTH FIRST BY id SET o SELECT id FROM r
SELECT id FROM doctors WHERE id = $1 FOR UPDATE
SELECT id FROM doctors WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED
SELECT id FROM doctors FOR SHARE NOWAIT
SELECT d.id FROM doctors d JOIN log l ON l.doctor = d.id FOR KEY SHARE OF d FOR UPDATE OF l
SELECT id FROM (SELECT id FROM doctors WHERE on_call) s FOR UPDATE
SELECT id FROM doctors WHERE id = $1 AND EXISTS (SELECT FROM log WHERE doctor = id) FOR NO KEY UPDATE OF doctors
INSERT INTO doctors VALUES ($1, $2, true)
INSERT INTO doctors (id) VALUES (DEFAULT), ($1)
INSERT INTO doctors DEFAULT VALUES
INSERT INTO log (doctor, note) SELECT id, 'x' FROM doctors WHERE on_call RETURNING doctor
INSERT INTO doctors (id, shift) VALUES ($1, $2) ON CONFLICT DO NOTHING
INSERT INTO doctors (id, shift) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET shift = excluded.shift WHERE doctors.on_call
INSERT INTO doctors AS d (id, shift) VALUES ($1, 1) ON CONFLICT ON CONSTRAINT doctors_pkey DO UPDATE SET shift = d.shift + 1 RETURNING d.shift
UPDATE doctors SET on_call = false WHERE id = $1
UPDATE doctors SET shift = shift + $2 WHERE id = $1 RETURNING *
UPDATE doctors SET (shift, on_call) = (SELECT count(*), true FROM log WHERE doctor = doctors.id) WHERE id = $1
UPDATE doctors d SET shift = l.doctor FROM log l WHERE l.doctor = d.id
UPDATE ONLY doctors SET shift = DEFAULT
DELETE FROM doctors WHERE id = $1
DELETE FROM doctors USING log WHERE log.doctor = doctors.id RETURNING doctors.id, log.note
DELETE FROM log WHERE ctid = (SELECT ctid FROM log WHERE doctor = $1 ORDER BY note LIMIT 1 FOR UPDATE SKIP LOCKED)
WITH x AS (UPDATE doctors SET on_call = false WHERE id = $1 RETURNING id) INSERT INTO log SELECT id, 'n' FROM x
WITH gone AS (DELETE FROM log RETURNING doctor), more AS (INSERT INTO doctors (id) VALUES ($1)) SELECT count(*) FROM gone
SELECT * FROM on_call_doctors
SELECT * FROM parts WHERE id = $1
INSERT INTO on_call_doctors VALUES ($1, 1, true)
UPDATE parts SET v = $1 WHERE id = $2
SELECT sum_of(id) FROM doctors
SELECT $1::small
SELECT json_build_object('id', id) -> 'id' FROM doctors
SELECT id FROM doctors TABLESAMPLE SYSTEM (10)
SELECT nextval('numbers')
SELECT pg_advisory_xact_lock(id) FROM doctors WHERE id = $1
SELECT id FROM doctors WHERE id = $1 -- a comment
15 MERGE INTO doctors d USING (VALUES ($1::int)) v(x) ON d.id = v.x WHEN MATCHED AND d.on_call THEN UPDATE SET shift = v.x WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (v.x)
17 MERGE INTO doctors d USING log l ON d.id = l.doctor WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING merge_action(), d.id
18 UPDATE doctors SET shift = $1 WHERE id = $2 RETURNING old.shift, new.shift
SELECT nosuch FROM doctors
DROP TABLE doctors
SELECT d.id FROM doctors d JOIN log l ON l.doctor = d.id WHERE d.id = $1
SELECT id FROM doctors d JOIN log l USING (note) WHERE note = $1
SELECT d.id FROM doctors d LEFT JOIN log l ON l.doctor = d.id AND l.note = $2 WHERE d.shift = $1
SELECT shift FROM doctors WHERE id = $1 AND id = $2
SELECT shift FROM doctors WHERE id = $1 + 1 AND shift = 3
SELECT shift FROM doctors WHERE id = random()
SELECT note FROM log WHERE note = 'a' || $1 AND doctor = 2
SELECT id FROM doctors WHERE shift = $1 ORDER BY on_call, id + 1 LIMIT 1 FOR UPDATE
SELECT id FROM doctors d WHERE EXISTS (SELECT FROM log l WHERE l.doctor = d.id AND l.note = $1)
SELECT shift, count(*) FROM doctors GROUP BY shift HAVING max(id) > 1 ORDER BY shift
INSERT INTO doctors VALUES ($1, 3, false), (7, $2, $3)
INSERT INTO log SELECT v.x, 'n' FROM (VALUES ($1::int)) v(x)
INSERT INTO log SELECT id, $1 FROM doctors WHERE shift = $2
UPDATE doctors SET shift = $1, on_call = NOT on_call WHERE id = $2 AND shift = $3
UPDATE doctors d SET shift = v.s FROM (VALUES ($1::int, $2::int)) v(i, s) WHERE d.id = v.i
INSERT INTO doctors (id) VALUES ($1) ON CONFLICT (id) WHERE on_call DO NOTHING
15 MERGE INTO doctors d USING (SELECT $1::int AS i, $2::int AS s) v ON d.id = v.i WHEN MATCHED THEN UPDATE SET shift = v.s WHEN NOT MATCHED THEN INSERT VALUES (v.i, v.s, true)
15 MERGE INTO doctors d USING log l ON d.id = l.doctor WHEN MATCHED THEN UPDATE SET shift = 1
WITH locked AS (SELECT id FROM doctors WHERE id = $1 FOR UPDATE) SELECT count(*) FROM log JOIN locked ON log.doctor = locked.id
WITH locked AS (SELECT id FROM doctors WHERE id = $1 FOR UPDATE) INSERT INTO log SELECT locked.id, 'n' FROM locked WHERE (SELECT count(*) FROM log l WHERE l.doctor = locked.id) < 3
INSERT INTO log SELECT $1, 'n' WHERE (SELECT count(*) FROM log l WHERE l.doctor = $1) < 3
INSERT INTO log SELECT d.id, 'n' FROM doctors d WHERE d.id = $1
INSERT INTO log SELECT v.x, 'n' FROM doctors d LEFT JOIN (VALUES ($1::int)) v(x) ON v.x = d.id
INSERT INTO log SELECT v.x, 'n' FROM doctors d LEFT JOIN (SELECT $1::int AS x WHERE $2 > 1) v ON v.x = d.id
SELECT l.note FROM (SELECT id FROM doctors WHERE id = $1 UNION SELECT 2) s JOIN log l ON l.doctor = s.id
SELECT o.note FROM (SELECT l.doctor FROM doctors d LEFT JOIN log l ON l.doctor = $1) s JOIN log o ON o.doctor = s.doctor
WITH RECURSIVE r AS (SELECT id FROM doctors WHERE id = $1 UNION SELECT r.id + 1 FROM r WHERE r.id < 9) SELECT l.note FROM log l JOIN r ON l.doctor = r.id
SELECT o.doctor FROM (SELECT note FROM log WHERE note = $1) s JOIN log o ON o.note = s.note
WITH d AS (UPDATE doctors SET id = id + 1 WHERE id = $1 RETURNING id) SELECT l.note FROM log l JOIN d ON l.doctor = d.id
SELECT note FROM log WHERE doctor IN (SELECT id FROM doctors WHERE id = $1)
INSERT INTO log SELECT d.id, 'n' FROM doctors d WHERE d.id = $1 AND (SELECT count(*) FROM log l WHERE l.doctor = d.id) < 3
UPDATE doctors SET shift = (SELECT count(*) FROM log WHERE doctor = doctors.id) WHERE id = $1
SELECT (SELECT max(l.note) FROM log l WHERE l.doctor = d.id) FROM doctors d WHERE d.id = $1 OR d.shift = $2
SELECT (SELECT max(l.note) FROM log l WHERE l.doctor = o.id) FROM doctors d LEFT JOIN doctors o ON o.id = $1
SELECT id FROM doctors d WHERE id = $1 AND EXISTS (SELECT FROM log l WHERE l.doctor = d.id AND EXISTS (SELECT FROM log o WHERE o.doctor = d.id AND o.note = l.note))
SELECT (SELECT max(o.id) FROM doctors o WHERE o.shift = l.doctor) FROM log l WHERE l.note = $1
UPDATE doctors SET id = $2 WHERE id = $1 RETURNING (SELECT max(note) FROM log WHERE doctor = doctors.id)
SELECT id AS a, shift::text AS b, shift + 1 AS c, d.on_call FROM doctors d WHERE shift::text = $1
SELECT s.id, s.shift FROM (SELECT id, shift FROM doctors) s ORDER BY s.shift
SELECT DISTINCT shift FROM doctors WHERE id = $1 LIMIT 3
SELECT d.id, l.note FROM doctors d JOIN log l ON l.doctor = d.id WHERE d.id = $1 FOR UPDATE OF d
SELECT id FROM doctors JOIN parts USING (id)
UPDATE doctors SET shift = shift + 1 WHERE id = $1 RETURNING id, shift
UPDATE doctors SET shift = $1 + 1, on_call = $2 WHERE id = $3 AND shift = $1
UPDATE doctors SET shift = o.shift + 1 FROM doctors o WHERE o.id = doctors.id
UPDATE doctors SET shift = abs(shift), id = 2 - id WHERE id = $1
18 UPDATE doctors SET shift = 1 WHERE id = $1 RETURNING old.shift AS a, new.shift AS b
SELECT pg_advisory_xact_lock($1)
SELECT pg_advisory_xact_lock(hashtext($1 || 'a'), 2), pg_advisory_xact_lock_shared(7)
SELECT pg_advisory_xact_lock_shared(1, $1) WHERE $2 > 1
SELECT 1 UNION SELECT id FROM doctors
