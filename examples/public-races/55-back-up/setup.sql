CREATE TABLE event (id int PRIMARY KEY, sold int NOT NULL);
CREATE TABLE attendee (id bigserial PRIMARY KEY, event int NOT NULL REFERENCES event);
CREATE INDEX ON attendee (event);
INSERT INTO event SELECT g, 0 FROM generate_series(1, 2) g;
