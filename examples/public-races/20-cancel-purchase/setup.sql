CREATE TABLE tier (id int PRIMARY KEY, capacity int NOT NULL);
CREATE TABLE purchase (id int PRIMARY KEY, tier int NOT NULL REFERENCES tier, state text NOT NULL);
INSERT INTO tier VALUES (1, 0);
INSERT INTO purchase SELECT g, 1, 'reserved' FROM generate_series(1, 4) g;
