\set id random(1, 3)
\set x random(1, 1000)
BEGIN;
SELECT (data ->> 'a')::int AS a FROM user_row WHERE id = :id \gset
UPDATE user_row SET data = jsonb_build_object('a', :a, 'b', :x) WHERE id = :id;
COMMIT;
