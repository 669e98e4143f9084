CREATE TABLE lease (action int PRIMARY KEY, holder int NOT NULL, fence int NOT NULL);
