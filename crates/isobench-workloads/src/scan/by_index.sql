-- The order asks for the index, also where all rows are read: sorting costs more. (No setting of the planner, which would be a statement more.)
SELECT count(val) FROM (SELECT val FROM scanned WHERE id <= :rows ORDER BY id) AS found;
