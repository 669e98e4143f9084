\set n random(1, 5)
MERGE INTO tag USING (SELECT :n AS name) new ON tag.name = new.name
WHEN MATCHED THEN UPDATE SET uses = tag.uses + 1
WHEN NOT MATCHED THEN INSERT VALUES (new.name, 1);
