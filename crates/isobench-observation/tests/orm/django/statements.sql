-- get() by key
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."sku", "shop_product"."price", "shop_product"."stock", "shop_product"."active", "shop_product"."created_at", "shop_product"."category_id" FROM "shop_product" WHERE "shop_product"."id" = 1 LIMIT 21;
-- get() by a unique text
SELECT "auth_user"."id", "auth_user"."password", "auth_user"."last_login", "auth_user"."username", "auth_user"."email", "auth_user"."is_active", "auth_user"."date_joined" FROM "auth_user" WHERE "auth_user"."username" = 'ann' LIMIT 21;
-- get() by a uuid
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."stock" FROM "shop_product" WHERE "shop_product"."sku" = '11111111-1111-4111-8111-111111111111'::uuid LIMIT 21;
-- get() by two columns
SELECT "shop_order"."id", "shop_order"."status", "shop_order"."total", "shop_order"."created_at", "shop_order"."paid_at", "shop_order"."user_id", "shop_order"."coupon_id" FROM "shop_order" WHERE ("shop_order"."status" = 'open' AND "shop_order"."user_id" = 1) LIMIT 21;
-- get() of a coupon that is valid
SELECT "shop_coupon"."id", "shop_coupon"."code", "shop_coupon"."max_uses", "shop_coupon"."times_used", "shop_coupon"."valid_until" FROM "shop_coupon" WHERE ("shop_coupon"."code" = 'TEN' AND "shop_coupon"."valid_until" > '2024-06-01T10:00:00+00:00'::timestamptz) LIMIT 21;
-- a session
SELECT "django_session"."session_key", "django_session"."session_data", "django_session"."expire_date" FROM "django_session" WHERE ("django_session"."expire_date" > '2024-06-01T10:00:00+00:00'::timestamptz AND "django_session"."session_key" = 'abc') LIMIT 21;
-- filter() by a foreign key
SELECT "shop_orderitem"."id", "shop_orderitem"."quantity", "shop_orderitem"."order_id", "shop_orderitem"."product_id" FROM "shop_orderitem" WHERE "shop_orderitem"."order_id" = 1;
-- filter() in an order
SELECT "shop_order"."id", "shop_order"."status", "shop_order"."total" FROM "shop_order" WHERE "shop_order"."user_id" = 1 ORDER BY "shop_order"."created_at" DESC;
-- all()
SELECT "shop_category"."id", "shop_category"."name", "shop_category"."slug", "shop_category"."parent_id" FROM "shop_category";
-- first()
SELECT "shop_product"."id", "shop_product"."name" FROM "shop_product" WHERE "shop_product"."stock" > 0 ORDER BY "shop_product"."id" ASC LIMIT 1;
-- last()
SELECT "shop_order"."id", "shop_order"."status" FROM "shop_order" WHERE "shop_order"."user_id" = 1 ORDER BY "shop_order"."id" DESC LIMIT 1;
-- latest()
SELECT "shop_order"."id", "shop_order"."status", "shop_order"."created_at" FROM "shop_order" ORDER BY "shop_order"."created_at" DESC LIMIT 1;
-- exists()
SELECT 1 AS "a" FROM "auth_user" WHERE "auth_user"."email" = 'new@example.com' LIMIT 1;
-- exists() of a row
SELECT 1 AS "a" FROM "shop_orderitem" WHERE ("shop_orderitem"."order_id" = 1 AND "shop_orderitem"."product_id" = 2) LIMIT 1;
-- count()
SELECT COUNT(*) AS "__count" FROM "shop_order" WHERE "shop_order"."user_id" = 1;
-- aggregate()
SELECT SUM("shop_orderitem"."quantity") AS "total" FROM "shop_orderitem" WHERE "shop_orderitem"."product_id" = 2;
-- aggregate() with a default
SELECT COALESCE(SUM("shop_order"."total"), '0') AS "spent", MAX("shop_order"."created_at") AS "last" FROM "shop_order" WHERE ("shop_order"."user_id" = 1 AND "shop_order"."status" = 'paid');
-- values_list()
SELECT "shop_product"."id" AS "id", "shop_product"."stock" AS "stock" FROM "shop_product" WHERE "shop_product"."category_id" = 1;
-- in a list
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."stock" FROM "shop_product" WHERE "shop_product"."id" IN (1, 2, 5);
-- a range of times
SELECT "shop_order"."id", "shop_order"."total" FROM "shop_order" WHERE ("shop_order"."created_at" >= '2024-03-02T00:00:00+00:00'::timestamptz AND "shop_order"."created_at" < '2024-04-01T00:00:00+00:00'::timestamptz);
-- a boolean
SELECT "shop_product"."id", "shop_product"."name" FROM "shop_product" WHERE ("shop_product"."active" AND "shop_product"."category_id" = 1);
-- no boolean
SELECT "auth_user"."id", "auth_user"."username" FROM "auth_user" WHERE NOT "auth_user"."is_active";
-- a price
SELECT "shop_product"."id", "shop_product"."price" FROM "shop_product" WHERE "shop_product"."price" >= '5.00';
-- is null
SELECT "shop_order"."id" FROM "shop_order" WHERE ("shop_order"."coupon_id" IS NULL AND "shop_order"."paid_at" IS NOT NULL);
-- exclude()
SELECT "shop_order"."id", "shop_order"."status" FROM "shop_order" WHERE ("shop_order"."user_id" = 1 AND NOT ("shop_order"."status" = 'paid'));
-- conditions joined by OR
SELECT "shop_product"."id", "shop_product"."stock" FROM "shop_product" WHERE ("shop_product"."stock" = 0 OR NOT "shop_product"."active");
-- contains
SELECT "shop_product"."id", "shop_product"."name" FROM "shop_product" WHERE "shop_product"."name"::text LIKE '%tea%';
-- startswith
SELECT "shop_category"."id", "shop_category"."slug" FROM "shop_category" WHERE "shop_category"."slug"::text LIKE 'green%';
-- icontains
SELECT "shop_product"."id", "shop_product"."name" FROM "shop_product" WHERE UPPER("shop_product"."name"::text) LIKE UPPER('%TEA%');
-- iexact
SELECT "auth_user"."id", "auth_user"."email" FROM "auth_user" WHERE UPPER("auth_user"."email"::text) = UPPER('Ann@example.com') LIMIT 21;
-- select_related()
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."category_id", "shop_category"."id", "shop_category"."name" FROM "shop_product" INNER JOIN "shop_category" ON ("shop_product"."category_id" = "shop_category"."id") WHERE "shop_product"."stock" > 0;
-- select_related() of a foreign key that may be null
SELECT "shop_order"."id", "shop_order"."status", "shop_order"."coupon_id", "shop_coupon"."id", "shop_coupon"."code", "shop_coupon"."times_used" FROM "shop_order" LEFT OUTER JOIN "shop_coupon" ON ("shop_order"."coupon_id" = "shop_coupon"."id") WHERE "shop_order"."user_id" = 1;
-- select_related() of two
SELECT "shop_orderitem"."id", "shop_orderitem"."quantity", "shop_order"."id", "shop_order"."status", "shop_product"."id", "shop_product"."name" FROM "shop_orderitem" INNER JOIN "shop_order" ON ("shop_orderitem"."order_id" = "shop_order"."id") INNER JOIN "shop_product" ON ("shop_orderitem"."product_id" = "shop_product"."id") WHERE "shop_orderitem"."order_id" = 1;
-- get() with select_related()
SELECT "shop_order"."id", "shop_order"."status", "auth_user"."id", "auth_user"."email" FROM "shop_order" INNER JOIN "auth_user" ON ("shop_order"."user_id" = "auth_user"."id") WHERE "shop_order"."id" = 1 LIMIT 21;
-- filter() across a relation
SELECT "shop_product"."id", "shop_product"."name" FROM "shop_product" INNER JOIN "shop_category" ON ("shop_product"."category_id" = "shop_category"."id") WHERE "shop_category"."slug" = 'tea';
-- the tree of categories
SELECT "shop_category"."id", "shop_category"."name", "shop_category"."parent_id", T2."id", T2."name" FROM "shop_category" LEFT OUTER JOIN "shop_category" T2 ON ("shop_category"."parent_id" = T2."id") WHERE "shop_category"."slug" = 'green-tea' LIMIT 21;
-- prefetch_related()
SELECT "shop_orderitem"."id", "shop_orderitem"."quantity", "shop_orderitem"."order_id", "shop_orderitem"."product_id" FROM "shop_orderitem" WHERE "shop_orderitem"."order_id" IN (1, 2);
-- prefetch_related() of many to many
SELECT ("shop_product_tags"."product_id") AS "_prefetch_related_val_product_id", "shop_tag"."id", "shop_tag"."name" FROM "shop_tag" INNER JOIN "shop_product_tags" ON ("shop_tag"."id" = "shop_product_tags"."tag_id") WHERE "shop_product_tags"."product_id" IN (1, 2);
-- select_for_update()
SELECT "shop_product"."id", "shop_product"."stock" FROM "shop_product" WHERE "shop_product"."id" = 1 LIMIT 21 FOR UPDATE;
-- select_for_update() of several, in an order
SELECT "shop_product"."id", "shop_product"."stock" FROM "shop_product" WHERE "shop_product"."id" IN (1, 2) ORDER BY "shop_product"."id" ASC FOR UPDATE;
-- select_for_update(nowait=True)
SELECT "shop_coupon"."id", "shop_coupon"."times_used" FROM "shop_coupon" WHERE "shop_coupon"."code" = 'TEN' LIMIT 21 FOR UPDATE NOWAIT;
-- select_for_update(skip_locked=True)
SELECT "shop_order"."id", "shop_order"."status" FROM "shop_order" WHERE "shop_order"."status" = 'open' ORDER BY "shop_order"."id" ASC LIMIT 1 FOR UPDATE SKIP LOCKED;
-- select_for_update(of=('self',))
SELECT "shop_order"."id", "shop_order"."status", "auth_user"."id", "auth_user"."email" FROM "shop_order" INNER JOIN "auth_user" ON ("shop_order"."user_id" = "auth_user"."id") WHERE "shop_order"."id" = 1 LIMIT 21 FOR UPDATE OF "shop_order";
-- create()
INSERT INTO "shop_order" ("status", "total", "created_at", "paid_at", "user_id", "coupon_id") VALUES ('open', '10.00', '2024-06-01T10:00:00+00:00'::timestamptz, NULL, 1, NULL) RETURNING "shop_order"."id";
-- bulk_create()
INSERT INTO "shop_orderitem" ("quantity", "order_id", "product_id") VALUES (1, 1, 1), (2, 1, 3) RETURNING "shop_orderitem"."id";
-- bulk_create(ignore_conflicts=True)
INSERT INTO "shop_product_tags" ("product_id", "tag_id") VALUES (1, 1), (1, 2) ON CONFLICT DO NOTHING;
-- bulk_create(update_conflicts=True)
INSERT INTO "shop_coupon" ("code", "max_uses", "times_used", "valid_until") VALUES ('TEN', 9, 0, '2031-01-01T00:00:00+00:00'::timestamptz) ON CONFLICT("code") DO UPDATE SET "max_uses" = EXCLUDED."max_uses" RETURNING "shop_coupon"."id";
-- save()
UPDATE "shop_coupon" SET "code" = 'TEN', "max_uses" = 5, "times_used" = 5, "valid_until" = '2030-01-01T00:00:00+00:00'::timestamptz WHERE "shop_coupon"."id" = 1;
-- save(update_fields)
UPDATE "shop_order" SET "status" = 'paid', "paid_at" = '2024-06-01T10:00:00+00:00'::timestamptz WHERE "shop_order"."id" = 1;
-- update() with F()
UPDATE "shop_product" SET "stock" = ("shop_product"."stock" - 1) WHERE ("shop_product"."id" = 1 AND "shop_product"."stock" >= 1);
-- update() of several
UPDATE "shop_order" SET "status" = 'expired' WHERE ("shop_order"."created_at" < '2024-03-02T00:00:00+00:00'::timestamptz AND "shop_order"."status" = 'open');
-- bulk_update()
UPDATE "shop_product" SET "stock" = (CASE WHEN ("shop_product"."id" = 1) THEN 4 WHEN ("shop_product"."id" = 2) THEN 6 ELSE NULL END)::integer WHERE "shop_product"."id" IN (1, 2);
-- update() across a relation
UPDATE "shop_product" SET "active" = false WHERE "shop_product"."id" IN (SELECT U0."id" FROM "shop_product" U0 INNER JOIN "shop_category" U1 ON (U0."category_id" = U1."id") WHERE U1."slug" = 'cups');
-- delete()
DELETE FROM "shop_orderitem" WHERE "shop_orderitem"."id" IN (1);
-- delete() of what belongs to a row
DELETE FROM "shop_orderitem" WHERE "shop_orderitem"."order_id" IN (1, 2);
-- clearing sessions
DELETE FROM "django_session" WHERE "django_session"."expire_date" < '2024-06-01T10:00:00+00:00'::timestamptz;
-- annotate() with a count
SELECT "shop_category"."id", "shop_category"."name", COUNT("shop_product"."id") AS "n" FROM "shop_category" LEFT OUTER JOIN "shop_product" ON ("shop_category"."id" = "shop_product"."category_id") GROUP BY "shop_category"."id";
-- values() with an aggregate
SELECT "shop_order"."status" AS "status", COUNT("shop_order"."id") AS "n" FROM "shop_order" GROUP BY 1;
-- annotate() with Exists()
SELECT "auth_user"."id", "auth_user"."username", EXISTS(SELECT 1 AS "a" FROM "shop_order" U0 WHERE (U0."status" = 'open' AND U0."user_id" = ("auth_user"."id")) LIMIT 1) AS "has_open" FROM "auth_user";
-- exclude() across a relation
SELECT "auth_user"."id", "auth_user"."username" FROM "auth_user" WHERE NOT (EXISTS(SELECT 1 AS "a" FROM "shop_order" U1 WHERE (U1."status" = 'open' AND U1."user_id" = ("auth_user"."id")) LIMIT 1));
-- the first page
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."price" FROM "shop_product" WHERE "shop_product"."active" ORDER BY "shop_product"."created_at" DESC, "shop_product"."id" DESC LIMIT 2;
-- another page
SELECT "shop_product"."id", "shop_product"."name", "shop_product"."price" FROM "shop_product" WHERE "shop_product"."active" ORDER BY "shop_product"."id" ASC LIMIT 2 OFFSET 2;
-- distinct()
SELECT DISTINCT "auth_user"."id", "auth_user"."username" FROM "auth_user" INNER JOIN "shop_order" ON ("auth_user"."id" = "shop_order"."user_id") WHERE "shop_order"."status" = 'open';
-- check of many to many
SELECT "shop_product_tags"."tag_id" FROM "shop_product_tags" WHERE ("shop_product_tags"."product_id" = 1 AND "shop_product_tags"."tag_id" IN (1, 2));
-- removal from many to many
DELETE FROM "shop_product_tags" WHERE ("shop_product_tags"."product_id" = 2 AND "shop_product_tags"."tag_id" IN (2));
