-- The function returns the SQLSTATE of the conflict that it caught, or NULL.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
--@ swallowed sqlstate=$1
SELECT simple_update_swallow(:aid, :bid, :tid, :delta);
