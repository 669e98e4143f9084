-- First by a key
SELECT * FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2;
-- $ 1, 1
-- First
SELECT * FROM "users" WHERE "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $1;
-- $ 1
-- First with a condition
SELECT * FROM "users" WHERE email = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2;
-- $ 'bob@example.com', 1
-- Last
SELECT * FROM "users" WHERE "users"."deleted_at" IS NULL ORDER BY "users"."id" DESC LIMIT $1;
-- $ 1
-- Take
SELECT * FROM "users" WHERE name = $1 AND "users"."deleted_at" IS NULL LIMIT $2;
-- $ 'ann', 1
-- Find
SELECT * FROM "orders" WHERE user_id = $1 AND "orders"."deleted_at" IS NULL;
-- $ 1
-- Find by keys
SELECT * FROM "users" WHERE "users"."id" IN ($1,$2) AND "users"."deleted_at" IS NULL;
-- $ 1, 2
-- Find with a struct
SELECT * FROM "orders" WHERE "orders"."user_id" = $1 AND "orders"."state" = $2 AND "orders"."deleted_at" IS NULL;
-- $ 1, 'open'
-- Find unscoped
SELECT * FROM "users" WHERE age > $1;
-- $ 10
-- Not
SELECT * FROM "users" WHERE NOT "users"."name" = $1 AND "users"."deleted_at" IS NULL;
-- $ 'ann'
-- Not in
SELECT * FROM "users" WHERE name NOT IN ($1,$2) AND "users"."deleted_at" IS NULL;
-- $ 'ann', 'dan'
-- Or
SELECT * FROM "users" WHERE (name = $1 OR age >= $2) AND "users"."deleted_at" IS NULL;
-- $ 'bob', 30
-- Between
SELECT * FROM "orders" WHERE (created_at BETWEEN $1 AND $2) AND "orders"."deleted_at" IS NULL;
-- $ '2024-03-01 00:00:00+00', '2024-03-02 00:00:00+00'
-- Like
SELECT * FROM "users" WHERE name LIKE $1 AND "users"."deleted_at" IS NULL;
-- $ '%nn%'
-- an amount
SELECT * FROM "orders" WHERE amount >= $1 AND "orders"."deleted_at" IS NULL;
-- $ 5
-- Select of columns
SELECT "name","age" FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL;
-- $ 1
-- Pluck
SELECT "age" FROM "users" WHERE "users"."deleted_at" IS NULL;
-- Count
SELECT count(*) FROM "orders" WHERE state = $1 AND "orders"."deleted_at" IS NULL;
-- $ 'open'
-- Scan of a sum
SELECT COALESCE(SUM(amount), 0) FROM "orders" WHERE user_id = $1 AND "orders"."deleted_at" IS NULL;
-- $ 1
-- Group
SELECT state, count(*) as n FROM "orders" WHERE "orders"."deleted_at" IS NULL GROUP BY "state";
-- Group with Having
SELECT state, sum(amount) as total FROM "orders" WHERE "orders"."deleted_at" IS NULL GROUP BY "state" HAVING sum(amount) > $1;
-- $ 5
-- Distinct
SELECT DISTINCT "state" FROM "orders" WHERE "orders"."deleted_at" IS NULL;
-- Order and Limit
SELECT * FROM "orders" WHERE "orders"."deleted_at" IS NULL ORDER BY id desc LIMIT $1;
-- $ 2
-- Order by a time
SELECT * FROM "orders" WHERE state = $1 AND "orders"."deleted_at" IS NULL ORDER BY created_at LIMIT $2;
-- $ 'open', 1
-- Limit and Offset
SELECT * FROM "users" WHERE "users"."deleted_at" IS NULL ORDER BY id LIMIT $1 OFFSET $2;
-- $ 1, 1
-- FindInBatches
SELECT * FROM "users" WHERE "users"."id" > $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2;
-- $ 1, 10
-- Preload of many
SELECT * FROM "orders" WHERE "orders"."user_id" IN ($1,$2) AND "orders"."deleted_at" IS NULL;
-- $ 1, 2
-- Preload of one
SELECT * FROM "companies" WHERE "companies"."id" = $1;
-- $ 1
-- Preload of many to many
SELECT * FROM "user_languages" WHERE "user_languages"."user_id" IN ($1,$2);
-- $ 1, 2
-- Joins
SELECT "orders"."id","orders"."state","orders"."user_id","Company"."id" AS "Company__id","Company"."name" AS "Company__name" FROM "orders" LEFT JOIN "companies" "Company" ON "orders"."company_id" = "Company"."id" WHERE "orders"."deleted_at" IS NULL;
-- Joins of a user that isn't deleted
SELECT "orders"."id","orders"."state","User"."id" AS "User__id","User"."name" AS "User__name" FROM "orders" LEFT JOIN "users" "User" ON "orders"."user_id" = "User"."id" AND "User"."deleted_at" IS NULL WHERE "orders"."id" = $1 AND "orders"."deleted_at" IS NULL ORDER BY "orders"."id" LIMIT $2;
-- $ 1, 1
-- InnerJoins
SELECT "orders"."id","orders"."state" FROM "orders" INNER JOIN "users" "User" ON "orders"."user_id" = "User"."id" WHERE "orders"."state" = $1;
-- $ 'open'
-- Association
SELECT "languages"."id","languages"."code" FROM "languages" JOIN "user_languages" ON "user_languages"."language_id" = "languages"."id" AND "user_languages"."user_id" = $1;
-- $ 1
-- Association count
SELECT count(*) FROM "languages" JOIN "user_languages" ON "user_languages"."language_id" = "languages"."id" AND "user_languages"."user_id" = $1;
-- $ 1
-- a subquery
SELECT * FROM "orders" WHERE amount > (SELECT AVG(amount) FROM "orders") AND "orders"."deleted_at" IS NULL;
-- Clauses(clause.Locking{Strength: "UPDATE"})
SELECT * FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2 FOR UPDATE;
-- $ 1, 1
-- Clauses(clause.Locking{Strength: "SHARE"})
SELECT * FROM "users" WHERE email = $1 AND "users"."deleted_at" IS NULL FOR SHARE OF "users";
-- $ 'ann@example.com'
-- Clauses(clause.Locking{Options: "NOWAIT"})
SELECT * FROM "orders" WHERE user_id = $1 AND "orders"."deleted_at" IS NULL FOR UPDATE NOWAIT;
-- $ 1
-- Create
INSERT INTO "users" ("created_at","updated_at","deleted_at","name","email","age","balance") VALUES ($1,$2,$3,$4,$5,$6,$7) RETURNING "id";
-- $ '2024-06-01 00:00:00+00', '2024-06-01 00:00:00+00', NULL, 'dan', 'dan@example.com', 1, 0
-- Create of several
INSERT INTO "orders" ("created_at","user_id","state","amount") VALUES ($1,$2,$3,$4),($5,$6,$7,$8) RETURNING "id";
-- $ '2024-06-01 00:00:00+00', 1, 'open', 1, '2024-06-01 00:00:00+00', 2, 'open', 2
-- OnConflict DoNothing
INSERT INTO "user_languages" ("user_id","language_id") VALUES ($1,$2) ON CONFLICT DO NOTHING;
-- $ 2, 2
-- OnConflict DoUpdates
INSERT INTO "users" ("name","email","age","balance") VALUES ($1,$2,$3,$4) ON CONFLICT ("email") DO UPDATE SET "name"="excluded"."name","age"="excluded"."age" RETURNING "id";
-- $ 'ann', 'ann@example.com', 31, 0
-- Save
UPDATE "users" SET "created_at"=$1,"updated_at"=$2,"deleted_at"=$3,"name"=$4,"email"=$5,"age"=$6,"balance"=$7 WHERE "users"."deleted_at" IS NULL AND "id" = $8;
-- $ '2024-01-01 00:00:00+00', '2024-06-01 00:00:00+00', NULL, 'ann', 'ann@example.com', 30, 90, 1
-- Update
UPDATE "orders" SET "state"=$1 WHERE "orders"."deleted_at" IS NULL AND "id" = $2;
-- $ 'paid', 1
-- UpdateColumn with an expression
UPDATE "users" SET "balance"=balance - $1 WHERE (id = $2 AND balance >= $3) AND "users"."deleted_at" IS NULL;
-- $ 10, 1, 10
-- Updates with a condition
UPDATE "orders" SET "state"=$1 WHERE state = $2 AND user_id = $3 AND "orders"."deleted_at" IS NULL;
-- $ 'paid', 'open', 1
-- Updates with Returning
UPDATE "orders" SET "amount"=amount * $1 WHERE "orders"."deleted_at" IS NULL AND "id" = $2 RETURNING *;
-- $ 2, 1
-- Delete of a soft-deleted model
UPDATE "users" SET "deleted_at"=$1 WHERE "users"."id" = $2 AND "users"."deleted_at" IS NULL;
-- $ '2024-06-01 00:00:00+00', 2
-- Unscoped Delete
DELETE FROM "orders" WHERE "orders"."id" = $1;
-- $ 3
-- Association Delete
DELETE FROM "user_languages" WHERE "user_languages"."user_id" = $1 AND "user_languages"."language_id" = $2;
-- $ 1, 2
