\set p random(1, 4)
\set me random(1, 1000)
SELECT (claimed_by IS NULL)::int AS free FROM pull_request WHERE id = :p \gset
\if :free = 1
UPDATE pull_request SET claimed_by = :me WHERE id = :p;
INSERT INTO review (pull_request, agent) VALUES (:p, :me);
\endif
