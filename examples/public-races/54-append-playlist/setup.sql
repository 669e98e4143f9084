CREATE TABLE playlist_item (playlist int NOT NULL, video int NOT NULL, position int NOT NULL, UNIQUE (playlist, video));
CREATE INDEX ON playlist_item (playlist, position);
