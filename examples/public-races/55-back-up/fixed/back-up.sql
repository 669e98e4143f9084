BEGIN READ ONLY;
SELECT id, sold FROM event ORDER BY id;
SELECT id, event FROM attendee ORDER BY id;
COMMIT;
