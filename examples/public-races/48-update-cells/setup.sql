CREATE TABLE user_row (id int PRIMARY KEY, data jsonb NOT NULL);
INSERT INTO user_row SELECT g, '{"a": 0, "b": 0}' FROM generate_series(1, 3) g;
