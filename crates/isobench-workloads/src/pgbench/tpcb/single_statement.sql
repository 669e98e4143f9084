-- A single statement, which is a transaction by itself. CockroachDB requires RETURNING in WITH
-- clauses.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
WITH
    u_accounts AS (UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid RETURNING abalance),
    u_tellers AS (UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid RETURNING tid),
    u_branches AS (UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid RETURNING bid),
    i_history AS (
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP)
        RETURNING tid
    )
SELECT abalance FROM u_accounts;
