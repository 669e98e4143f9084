CREATE TABLE organization (id int PRIMARY KEY, member_limit int NOT NULL);
CREATE TABLE membership (id bigserial PRIMARY KEY, organization int NOT NULL REFERENCES organization, member int NOT NULL);
CREATE INDEX ON membership (organization);
INSERT INTO organization SELECT g, 2 FROM generate_series(1, 3) g;
INSERT INTO membership (organization, member) SELECT g, g FROM generate_series(1, 3) g;
