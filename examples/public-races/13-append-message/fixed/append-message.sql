\set s random(1, 3)
\set body random(1, 1000000)
BEGIN;
SELECT version FROM stream WHERE id = :s FOR UPDATE \gset
INSERT INTO message (stream, position, body) VALUES (:s, :version + 1, :body);
UPDATE stream SET version = :version + 1 WHERE id = :s;
COMMIT;
