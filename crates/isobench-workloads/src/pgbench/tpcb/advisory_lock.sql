-- A lock on the branch's number, taken by a statement before BEGIN, so that the snapshot, which is
-- taken by the first statement after BEGIN, includes the preceding transaction.
-- (pg_advisory_xact_lock inside the block would come after the snapshot.) The lock belongs to the
-- session, so a failed attempt doesn't release it, and each attempt starts by unlocking. FROM is
-- evaluated before the lock is taken. The schema is a part of the key, so that locks of others, or
-- of the same tables in another schema, are others.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
SELECT pg_advisory_lock(hashtext(current_schema()), :bid) FROM pg_advisory_unlock_all();
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
SELECT pg_advisory_unlock_all();
