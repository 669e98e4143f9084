COMMIT;
-- Only now is the record one that has to be there.
\set newest :inserted
