\set w random(1, 3)
\set a random(1, 60)
UPDATE wallet SET balance = balance - :a WHERE id = :w AND balance >= :a RETURNING balance;
