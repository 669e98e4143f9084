\set e random(1, 3)
INSERT INTO index_job (entity, partition, started) VALUES (:e, NULL, 1)
ON CONFLICT (entity, coalesce(partition, -1)) DO UPDATE SET started = index_job.started + 1;
