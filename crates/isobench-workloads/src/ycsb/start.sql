\if :transaction = 1
-- The number of the record that this client inserted last.
\set newest :records
\endif
\set inserted :newest
\set u 1.0
\set left :operations
BEGIN;
