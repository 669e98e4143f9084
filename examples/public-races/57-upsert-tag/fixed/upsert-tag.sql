\set n random(1, 5)
INSERT INTO tag VALUES (:n, 1) ON CONFLICT (name) DO UPDATE SET uses = tag.uses + 1;
