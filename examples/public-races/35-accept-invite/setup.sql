CREATE TABLE invite (token int PRIMARY KEY, org int NOT NULL);
CREATE TABLE member (org int NOT NULL, person int NOT NULL, PRIMARY KEY (org, person));
INSERT INTO invite SELECT g, 1 FROM generate_series(1, 4) g;
