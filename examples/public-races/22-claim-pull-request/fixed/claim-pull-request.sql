\set p random(1, 4)
\set me random(1, 1000)
\set won 0
UPDATE pull_request SET claimed_by = :me WHERE id = :p AND claimed_by IS NULL RETURNING 1 AS won \aset
\if :won = 1
INSERT INTO review (pull_request, agent) VALUES (:p, :me);
\endif
