\set p random(1, 3)
\set v random(1, 100000000)
SELECT coalesce(max(position), 0) AS last FROM playlist_item WHERE playlist = :p \gset
INSERT INTO playlist_item VALUES (:p, :v, :last + 1);
