\set id random(1, 20)
UPDATE job SET doing = false WHERE id = :id AND doing;
