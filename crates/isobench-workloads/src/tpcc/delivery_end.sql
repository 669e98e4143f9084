COMMIT;
\if :think > 0
\set pause int(least(50000.0, -5000 * ln(random(1, 1000000) / 1000000.0)) * :think / 100)
\sleep :pause ms
\endif
