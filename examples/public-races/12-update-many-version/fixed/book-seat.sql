\set me random(1, 1000)
\set id random(1, 4)
SELECT version FROM seat WHERE id = :id \gset
UPDATE seat SET holder = :me, version = version + 1 WHERE id = :id AND version = :version;
