BEGIN;
SELECT position AS last FROM checkpoint WHERE id = 1 FOR UPDATE \gset
SELECT coalesce(max(position), :last) AS upto FROM message WHERE position > :last \gset
INSERT INTO delivered SELECT position FROM message WHERE position > :last AND position <= :upto;
UPDATE checkpoint SET position = :upto WHERE id = 1;
COMMIT;
