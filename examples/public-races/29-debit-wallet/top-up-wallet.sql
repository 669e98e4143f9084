\set w random(1, 3)
\set a random(1, 60)
SELECT balance FROM wallet WHERE id = :w \gset
UPDATE wallet SET balance = :balance + :a WHERE id = :w;
