CREATE TABLE venue (id int PRIMARY KEY);
CREATE TABLE booking (id bigserial PRIMARY KEY, venue int NOT NULL REFERENCES venue, starts int NOT NULL, ends int NOT NULL);
CREATE INDEX ON booking (venue);
INSERT INTO venue SELECT g FROM generate_series(1, 3) g;
