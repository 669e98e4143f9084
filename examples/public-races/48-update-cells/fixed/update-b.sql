\set id random(1, 3)
\set x random(1, 1000)
UPDATE user_row SET data = data || jsonb_build_object('b', :x) WHERE id = :id;
