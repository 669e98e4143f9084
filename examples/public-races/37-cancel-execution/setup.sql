CREATE TABLE execution (id int PRIMARY KEY, status text NOT NULL);
CREATE TABLE purchase (id bigserial PRIMARY KEY, execution int NOT NULL);
INSERT INTO execution SELECT g, 'pending' FROM generate_series(1, 4) g;
