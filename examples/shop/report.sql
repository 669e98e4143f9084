BEGIN;
SELECT sum(balance) FROM customer WHERE id BETWEEN 1 AND 20;
SELECT sum(balance) FROM customer WHERE id BETWEEN 21 AND 40;
SELECT p.category, sum(l.quantity), sum(l.quantity * p.price)
  FROM order_line l JOIN product p ON p.id = l.product
 GROUP BY p.category ORDER BY p.category;
COMMIT;
