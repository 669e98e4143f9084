-- Delivery (TPC-C clause 2.7): the oldest undelivered order of each district, in one transaction, at
-- once rather than from a queue. A district without such an order is left out.
\if :think > 0 and :attempt = 1
\set pause 2000 * :think / 100
\sleep :pause ms
\endif
\set w :client_id % :warehouses + 1
\set carrier random(1, 10)
\set d 0
BEGIN;
