BEGIN;
SELECT tx AS last_tx, position AS last FROM checkpoint WHERE id = 1 FOR UPDATE \gset
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon \gset
INSERT INTO delivered SELECT position FROM message WHERE (tx, position) > (:last_tx, :last) AND tx < :horizon;
UPDATE checkpoint SET (tx, position) = (SELECT tx, position FROM message WHERE (tx, position) > (:last_tx, :last) AND tx < :horizon ORDER BY tx DESC, position DESC LIMIT 1)
WHERE id = 1 AND EXISTS (SELECT 1 FROM message WHERE (tx, position) > (:last_tx, :last) AND tx < :horizon);
COMMIT;
