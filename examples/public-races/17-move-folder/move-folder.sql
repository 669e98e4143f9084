\set f random(2, 6)
\set t random(1, 6)
BEGIN;
WITH RECURSIVE above AS (SELECT id, parent FROM folder WHERE id = :t UNION SELECT p.id, p.parent FROM folder p JOIN above a ON p.id = a.parent)
SELECT count(*) AS inside FROM above WHERE id = :f \gset
\if :inside = 0
UPDATE folder SET parent = :t WHERE id = :f;
\endif
COMMIT;
