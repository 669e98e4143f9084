\set n random(1000, 100000)
SELECT count(*) AS users FROM users \gset
\if :users < 5
INSERT INTO users (name) VALUES ('n' || :n);
\endif
