CREATE TABLE event (id bigserial PRIMARY KEY, connection int NOT NULL, origin int NOT NULL, content text NOT NULL);
CREATE INDEX ON event (connection, origin);
