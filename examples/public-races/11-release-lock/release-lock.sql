\set id random(1, 4)
BEGIN;
SELECT miner, amount, (status = 'locked')::int AS locked FROM lock_ledger WHERE id = :id \gset
\if :locked = 1
UPDATE balance SET amount = amount + :amount WHERE miner = :miner;
UPDATE lock_ledger SET status = 'released' WHERE id = :id;
\endif
COMMIT;
