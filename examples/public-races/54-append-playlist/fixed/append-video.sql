\set p random(1, 3)
\set v random(1, 100000000)
INSERT INTO playlist_item SELECT :p, :v, coalesce(max(position), 0) + 1 FROM playlist_item WHERE playlist = :p;
