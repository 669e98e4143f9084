CREATE OR REPLACE PROCEDURE simple_update_retry(
    p_aid bigint, p_bid int, p_tid int, p_delta int, p_most int, INOUT retries int, INOUT wasted bigint
)
LANGUAGE plpgsql AS $procedure$
DECLARE
    began timestamptz;
    failed boolean;
BEGIN
    retries := 0;
    wasted := 0;
    LOOP
        began := clock_timestamp();
        failed := false;
        BEGIN
            UPDATE pgbench_accounts SET abalance = abalance + p_delta WHERE aid = p_aid;
            PERFORM abalance FROM pgbench_accounts WHERE aid = p_aid;
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (p_tid, p_bid, p_aid, p_delta, CURRENT_TIMESTAMP);
        EXCEPTION WHEN serialization_failure OR deadlock_detected THEN
            IF retries >= p_most THEN
                RAISE;
            END IF;
            failed := true;
        END;
        -- The end of CALL commits. (A transaction can't be ended inside a block with an exception
        -- handler.)
        EXIT WHEN NOT failed;
        -- Starts a new transaction, at the session's level, with a new snapshot.
        ROLLBACK;
        retries := retries + 1;
        wasted := wasted + CAST(extract(epoch FROM clock_timestamp() - began) * 1000000 AS bigint);
    END LOOP;
END
$procedure$
