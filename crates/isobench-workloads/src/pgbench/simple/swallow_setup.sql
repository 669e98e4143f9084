CREATE OR REPLACE FUNCTION simple_update_swallow(p_aid bigint, p_bid int, p_tid int, p_delta int) RETURNS text
LANGUAGE plpgsql AS $function$
BEGIN
    UPDATE pgbench_accounts SET abalance = abalance + p_delta WHERE aid = p_aid;
    PERFORM abalance FROM pgbench_accounts WHERE aid = p_aid;
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (p_tid, p_bid, p_aid, p_delta, CURRENT_TIMESTAMP);
    RETURN NULL;
EXCEPTION WHEN serialization_failure OR deadlock_detected THEN
    RETURN SQLSTATE;
END
$function$
