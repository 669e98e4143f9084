\set id random(1, 4)
\set done 0
BEGIN;
SELECT miner, amount FROM lock_ledger WHERE id = :id \gset
UPDATE lock_ledger SET status = 'released' WHERE id = :id AND status = 'locked' RETURNING 1 AS done \aset
\if :done = 1
UPDATE balance SET amount = amount + :amount WHERE miner = :miner;
\endif
COMMIT;
