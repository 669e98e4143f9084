\set f random(1, 3)
SELECT balance FROM account WHERE id = :f \gset
\if :balance >= 60
BEGIN;
UPDATE account SET balance = balance - 60 WHERE id = :f;
INSERT INTO reservation (account, amount) VALUES (:f, 60);
COMMIT;
\endif
