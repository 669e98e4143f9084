\set phone random(1, 60)
BEGIN;
SELECT count(*) AS taken FROM member WHERE phone = :phone \gset
\if :taken = 0
\sleep 5 ms
INSERT INTO member (phone) VALUES (:phone);
\endif
COMMIT;
