CREATE TABLE dataset_version (id int PRIMARY KEY, status jsonb NOT NULL);
INSERT INTO dataset_version SELECT g, '{"rds": 0, "cxg": 0}' FROM generate_series(1, 3) g;
