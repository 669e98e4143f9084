\set e random(1, 2)
BEGIN;
UPDATE event SET sold = sold + 1 WHERE id = :e;
INSERT INTO attendee (event) VALUES (:e);
COMMIT;
