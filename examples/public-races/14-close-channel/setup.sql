CREATE TABLE link_node (pub int PRIMARY KEY, addr text NOT NULL);
CREATE TABLE channel (id bigserial PRIMARY KEY, pub int NOT NULL, open boolean NOT NULL);
CREATE INDEX ON channel (pub);
INSERT INTO link_node SELECT g, 'a' FROM generate_series(1, 2) g;
INSERT INTO channel (pub, open) SELECT g, true FROM generate_series(1, 2) g;
