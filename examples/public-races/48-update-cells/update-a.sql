\set id random(1, 3)
\set x random(1, 1000)
BEGIN;
SELECT (data ->> 'b')::int AS b FROM user_row WHERE id = :id \gset
UPDATE user_row SET data = jsonb_build_object('a', :x, 'b', :b) WHERE id = :id;
COMMIT;
