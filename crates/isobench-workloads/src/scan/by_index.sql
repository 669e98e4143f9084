-- ORDER BY makes the planner choose the index even if all rows are read, because sorting costs
-- more. (Changing a planner setting would take another statement.)
SELECT count(val) FROM (SELECT val FROM scanned WHERE id <= :rows ORDER BY id) AS found;
