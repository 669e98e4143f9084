CREATE TABLE workspace (id int PRIMARY KEY);
CREATE TABLE folder (id int PRIMARY KEY, workspace int NOT NULL REFERENCES workspace, parent int REFERENCES folder);
INSERT INTO workspace VALUES (1);
INSERT INTO folder SELECT g, 1, CASE WHEN g = 1 THEN NULL ELSE 1 END FROM generate_series(1, 6) g;
