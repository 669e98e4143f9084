-- The procedure makes up to 10 retries of the transaction.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
--@ inside retries=$1 wasted=$2
CALL tpcb_retry(:aid, :bid, :tid, :delta, 10, NULL, NULL);
