\set body random(1, 1000)
BEGIN;
INSERT INTO message (body) VALUES (:body);
SELECT 1;
COMMIT;
