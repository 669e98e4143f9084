CREATE OR REPLACE FUNCTION orders_swallow(
    p_product bigint, p_shop bigint, p_quantity bigint, p_attempt bigint,
    OUT swallowed text,
    OUT product_read bigint,
    OUT product_writer bigint,
    OUT shop_read bigint,
    OUT shop_writer bigint,
    OUT product_written bigint,
    OUT shop_written bigint
)
LANGUAGE plpgsql AS $function$
DECLARE
    unit_price bigint;
    in_stock bigint;
    earned bigint;
BEGIN
    SELECT version, writer, price, stock INTO product_read, product_writer, unit_price, in_stock FROM products WHERE id = p_product;
    SELECT version, writer, revenue INTO shop_read, shop_writer, earned FROM shops WHERE id = p_shop;
    in_stock := in_stock - p_quantity;
    earned := earned + p_quantity * unit_price;
    UPDATE products SET version = version + 1, writer = p_attempt, stock = in_stock, sold = sold + p_quantity
        WHERE id = p_product RETURNING version INTO product_written;
    UPDATE shops SET version = version + 1, writer = p_attempt, revenue = earned
        WHERE id = p_shop RETURNING version INTO shop_written;
EXCEPTION WHEN serialization_failure OR deadlock_detected THEN
    swallowed := SQLSTATE;
END
$function$;
