\set e random(1, 3)
\set n random(1, 1000)
SELECT steps, (status = 'cancelled')::int AS cancelled FROM execution WHERE id = :e \gset
\if :cancelled = 0
UPDATE execution SET steps = :steps + 1, trace = trace || :n WHERE id = :e;
\endif
