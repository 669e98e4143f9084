\set e random(1, 4)
\set new random(1, 100)
BEGIN;
SELECT amount AS old FROM entry WHERE id = :e \gset
UPDATE account SET balance = balance - :old + :new WHERE id = 1;
UPDATE entry SET amount = :new WHERE id = :e;
COMMIT;
