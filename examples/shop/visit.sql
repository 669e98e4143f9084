\set product random(1, 12)
BEGIN;
SELECT number FROM visits WHERE product = :product AND weekday = 'Sunday' \gset
UPDATE visits SET number = :number + 1 WHERE product = :product AND weekday = 'Sunday';
COMMIT;
