CREATE TABLE item (key int PRIMARY KEY, value int NOT NULL);
CREATE TABLE created (id bigserial PRIMARY KEY, key int NOT NULL);
