CREATE TABLE token (jti bigint PRIMARY KEY, family int NOT NULL, consumed boolean NOT NULL);
INSERT INTO token SELECT g, g, false FROM generate_series(1, 6) g;
