CREATE OR REPLACE PROCEDURE orders_retry(
    p_product bigint, p_shop bigint, p_quantity bigint, p_attempt bigint, p_most int,
    INOUT retries int,
    INOUT wasted bigint,
    INOUT product_read bigint,
    INOUT product_writer bigint,
    INOUT shop_read bigint,
    INOUT shop_writer bigint,
    INOUT product_written bigint,
    INOUT shop_written bigint
)
LANGUAGE plpgsql AS $procedure$
DECLARE
    unit_price bigint;
    in_stock bigint;
    earned bigint;
    began timestamptz;
    failed boolean;
BEGIN
    retries := 0;
    wasted := 0;
    LOOP
        began := clock_timestamp();
        failed := false;
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
            IF retries >= p_most THEN
                RAISE;
            END IF;
            failed := true;
        END;
        -- The end of CALL commits. (A transaction can't be ended inside a block with an exception
        -- handler.)
        EXIT WHEN NOT failed;
        -- Starts a new transaction, at the session's level, with a new snapshot.
        ROLLBACK;
        retries := retries + 1;
        wasted := wasted + CAST(extract(epoch FROM clock_timestamp() - began) * 1000000 AS bigint);
    END LOOP;
END
$procedure$;
