\set f random(1, 3)
BEGIN;
SELECT balance FROM account WHERE id = :f FOR UPDATE \gset
\if :balance >= 60
UPDATE account SET balance = balance - 60 WHERE id = :f;
INSERT INTO reservation (account, amount) VALUES (:f, 60);
\endif
COMMIT;
