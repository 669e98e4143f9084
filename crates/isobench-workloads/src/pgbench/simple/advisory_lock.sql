-- A lock on the number of the account, taken in a statement of its own before BEGIN: so the snapshot, which the first statement
-- after BEGIN takes, already has what the one before it committed. (pg_advisory_xact_lock inside the block would come after
-- the snapshot.) An attempt that failed hasn't released its lock, which belongs to the session; so each begins with that. FROM is
-- evaluated before the lock is taken. The constant keeps away from numbers that somebody else may lock.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
SELECT pg_advisory_lock(7000000000000000000 + :aid) FROM pg_advisory_unlock_all();
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
SELECT pg_advisory_unlock_all();
