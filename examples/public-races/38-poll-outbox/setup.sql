CREATE TABLE message (position bigserial PRIMARY KEY, tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, body int NOT NULL);
CREATE TABLE checkpoint (id int PRIMARY KEY, tx bigint NOT NULL, position bigint NOT NULL);
CREATE TABLE delivered (position bigint NOT NULL);
INSERT INTO checkpoint VALUES (1, 0, 0);
