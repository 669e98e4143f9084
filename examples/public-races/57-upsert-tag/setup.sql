CREATE TABLE tag (name int PRIMARY KEY, uses int NOT NULL);
