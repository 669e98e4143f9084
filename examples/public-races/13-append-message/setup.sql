CREATE TABLE stream (id int PRIMARY KEY, version int NOT NULL);
CREATE TABLE message (stream int NOT NULL REFERENCES stream, position int NOT NULL, body int NOT NULL, PRIMARY KEY (stream, position));
INSERT INTO stream SELECT g, 0 FROM generate_series(1, 3) g;
