CREATE TABLE activity (id int PRIMARY KEY);
CREATE TABLE activity_link (id bigserial PRIMARY KEY, activity int NOT NULL REFERENCES activity, target int NOT NULL);
CREATE INDEX ON activity_link (activity);
INSERT INTO activity SELECT g FROM generate_series(1, 2) g;
INSERT INTO activity_link (activity, target) SELECT g, g FROM generate_series(1, 2) g;
