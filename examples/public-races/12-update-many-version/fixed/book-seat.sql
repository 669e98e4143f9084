\set me random(1, 1000)
\set id random(1, 4)
\set version -1
SELECT version FROM seat WHERE id = :id AND holder = 0 \aset
\if :version >= 0
UPDATE seat SET holder = :me, version = version + 1 WHERE id = :id AND version = :version;
\endif
