\set customer random(1, 40)
\set product random(1, 12)
\set quantity random(1, 3)
BEGIN;
SELECT price, stock FROM product WHERE id = :product \gset
\if :stock >= :quantity
SELECT balance FROM customer WHERE id = :customer \gset
UPDATE product SET stock = :stock - :quantity WHERE id = :product;
UPDATE customer SET balance = :balance - :price * :quantity WHERE id = :customer;
INSERT INTO order_line (customer, product, quantity) VALUES (:customer, :product, :quantity);
\endif
COMMIT;
