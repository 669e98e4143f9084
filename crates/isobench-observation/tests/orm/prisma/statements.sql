-- findUnique
SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name", "public"."User"."role"::text, "public"."User"."balance", "public"."User"."createdAt" FROM "public"."User" WHERE ("public"."User"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3;
-- $ 1, 1, 0
-- findUnique by a text
SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name", "public"."User"."balance" FROM "public"."User" WHERE ("public"."User"."email" = $1 AND 1=1) LIMIT $2 OFFSET $3;
-- $ 'ann@example.com', 1, 0
-- findUnique by a uuid
SELECT "public"."Post"."id"::text, "public"."Post"."title", "public"."Post"."views" FROM "public"."Post" WHERE ("public"."Post"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3;
-- $ 'dddddddd-0000-4000-8000-000000000001', 1, 0
-- findFirst
SELECT "public"."Seat"."id", "public"."Seat"."userId", "public"."Seat"."movieId", "public"."Seat"."version" FROM "public"."Seat" WHERE ("public"."Seat"."movieId" = $1 AND "public"."Seat"."userId" IS NULL) LIMIT $2 OFFSET $3;
-- $ 1, 1, 0
-- findFirst in an order
SELECT "public"."Post"."id"::text, "public"."Post"."title" FROM "public"."Post" WHERE "public"."Post"."published" = $1 ORDER BY "public"."Post"."views" DESC LIMIT $2 OFFSET $3;
-- $ true, 1, 0
-- findMany
SELECT "public"."User"."id", "public"."User"."email", "public"."User"."balance" FROM "public"."User" WHERE 1=1 OFFSET $1;
-- $ 0
-- findMany with a condition
SELECT "public"."Post"."id"::text, "public"."Post"."title", "public"."Post"."authorId" FROM "public"."Post" WHERE ("public"."Post"."authorId" = $1 AND "public"."Post"."published" = $2) OFFSET $3;
-- $ 1, true, 0
-- findMany with an enum
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE "public"."User"."role" = CAST($1::text AS "public"."Role") OFFSET $2;
-- $ 'USER', 0
-- findMany in
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE "public"."User"."id" IN ($1,$2) OFFSET $3;
-- $ 1, 2, 0
-- findMany with OR
SELECT "public"."User"."id" FROM "public"."User" WHERE ("public"."User"."balance" > $1 OR "public"."User"."name" IS NULL) OFFSET $2;
-- $ 50, 0
-- findMany with NOT
SELECT "public"."Seat"."id" FROM "public"."Seat" WHERE ("public"."Seat"."movieId" = $1 AND (NOT "public"."Seat"."userId" = $2)) OFFSET $3;
-- $ 1, 1, 0
-- contains
SELECT "public"."User"."id", "public"."User"."name" FROM "public"."User" WHERE "public"."User"."name"::text LIKE $1 OFFSET $2;
-- $ '%n%', 0
-- contains, insensitive
SELECT "public"."User"."id", "public"."User"."name" FROM "public"."User" WHERE "public"."User"."name"::text ILIKE $1 OFFSET $2;
-- $ '%B%', 0
-- a time
SELECT "public"."User"."id", "public"."User"."createdAt" FROM "public"."User" WHERE "public"."User"."createdAt" >= $1 OFFSET $2;
-- $ '2024-01-02 00:00:00', 0
-- take
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE 1=1 ORDER BY "public"."User"."id" ASC LIMIT $1 OFFSET $2;
-- $ 2, 0
-- skip and take
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE 1=1 ORDER BY "public"."User"."id" ASC LIMIT $1 OFFSET $2;
-- $ 1, 1
-- cursor
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User", (SELECT "public"."User"."id" AS "User_id_0" FROM "public"."User" WHERE ("public"."User"."id") = ($1)) AS "order_cmp" WHERE "public"."User"."id" >= "order_cmp"."User_id_0" ORDER BY "public"."User"."id" ASC LIMIT $2 OFFSET $3;
-- $ 1, 2, 1
-- include of many
SELECT "public"."Post"."id"::text, "public"."Post"."title", "public"."Post"."authorId" FROM "public"."Post" WHERE "public"."Post"."authorId" IN ($1,$2) OFFSET $3;
-- $ 1, 2, 0
-- include of one
SELECT "public"."Profile"."id", "public"."Profile"."bio", "public"."Profile"."userId" FROM "public"."Profile" WHERE "public"."Profile"."userId" IN ($1) OFFSET $2;
-- $ 1, 0
-- include of many to many
SELECT "public"."_Likes"."A"::text, "public"."_Likes"."B" FROM "public"."_Likes" WHERE "public"."_Likes"."A" IN ($1);
-- $ 'dddddddd-0000-4000-8000-000000000001'
-- count
SELECT COUNT(*) FROM (SELECT "public"."Seat"."id" FROM "public"."Seat" WHERE "public"."Seat"."movieId" = $1 OFFSET $2) AS "sub";
-- $ 1, 0
-- aggregate
SELECT SUM("views"), MAX("views") FROM (SELECT "public"."Post"."id", "public"."Post"."views" FROM "public"."Post" WHERE "public"."Post"."authorId" = $1 OFFSET $2) AS "sub";
-- $ 1, 0
-- groupBy
SELECT COUNT(*), "public"."Post"."authorId" FROM "public"."Post" WHERE 1=1 GROUP BY "public"."Post"."authorId" OFFSET $1;
-- $ 0
-- some
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE ("public"."User"."id") IN (SELECT "t1"."authorId" FROM "public"."Post" AS "t1" WHERE ("t1"."published" = $1 AND "t1"."authorId" IS NOT NULL)) OFFSET $2;
-- $ true, 0
-- none
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE ("public"."User"."id") NOT IN (SELECT "t1"."authorId" FROM "public"."Post" AS "t1" WHERE (1=1 AND "t1"."authorId" IS NOT NULL)) OFFSET $1;
-- $ 0
-- a condition on the other side
SELECT "public"."Post"."id"::text FROM "public"."Post" LEFT JOIN "public"."User" AS "j1" ON ("j1"."id") = ("public"."Post"."authorId") WHERE ("j1"."email" = $1 AND ("j1"."id" IS NOT NULL)) OFFSET $2;
-- $ 'bob@example.com', 0
-- create
INSERT INTO "public"."User" ("email","name","role","balance","createdAt") VALUES ($1,$2,CAST($3::text AS "public"."Role"),$4,$5) RETURNING "public"."User"."id", "public"."User"."email";
-- $ 'dan@example.com', 'Dan', 'USER', 0, '2024-05-01 00:00:00'
-- createMany
INSERT INTO "public"."Post" ("id","title","authorId") VALUES ($1,$2,$3), ($4,$5,$6);
-- $ 'dddddddd-0000-4000-8000-000000000007', 'A', 1, 'dddddddd-0000-4000-8000-000000000008', 'B', 2
-- createMany with skipDuplicates
INSERT INTO "public"."Seat" ("id","movieId") VALUES ($1,$2) ON CONFLICT DO NOTHING;
-- $ 'A1', 1
-- upsert
INSERT INTO "public"."User" ("email","name") VALUES ($1,$2) ON CONFLICT ("email") DO UPDATE SET "name" = $3 WHERE ("public"."User"."email" = $4 AND 1=1) RETURNING "public"."User"."id", "public"."User"."email";
-- $ 'ann@example.com', 'Ann', 'Anna', 'ann@example.com'
-- connect of many to many
INSERT INTO "public"."_Likes" ("A","B") VALUES ($1,$2) ON CONFLICT DO NOTHING;
-- $ 'dddddddd-0000-4000-8000-000000000003', 1
-- update
UPDATE "public"."User" SET "name" = $1 WHERE ("public"."User"."id" = $2 AND 1=1) RETURNING "public"."User"."id", "public"."User"."email", "public"."User"."name";
-- $ 'Anne', 1
-- update with increment
UPDATE "public"."Post" SET "views" = ("public"."Post"."views" + $1) WHERE ("public"."Post"."id" = $2 AND 1=1) RETURNING "public"."Post"."id", "public"."Post"."views";
-- $ 1, 'dddddddd-0000-4000-8000-000000000001'
-- update with a version
UPDATE "public"."Seat" SET "userId" = $1, "version" = ("public"."Seat"."version" + $2) WHERE ("public"."Seat"."id" = $3 AND "public"."Seat"."version" = $4);
-- $ 1, 1, 'A1', 0
-- updateMany
UPDATE "public"."User" SET "balance" = ("public"."User"."balance" - $1) WHERE ("public"."User"."id" = $2 AND "public"."User"."balance" >= $3);
-- $ 10, 2, 10
-- updateMany after its own select
UPDATE "public"."Seat" SET "userId" = $1 WHERE ("public"."Seat"."id" IN ($2) AND ("public"."Seat"."movieId" = $3 AND "public"."Seat"."userId" IS NULL));
-- $ 3, 'B1', 2
-- delete
DELETE FROM "public"."Post" WHERE ("public"."Post"."id" = $1 AND 1=1) RETURNING "public"."Post"."id"::text, "public"."Post"."title";
-- $ 'dddddddd-0000-4000-8000-000000000002'
-- deleteMany
DELETE FROM "public"."Seat" WHERE "public"."Seat"."movieId" = $1;
-- $ 2
-- disconnect of many to many
DELETE FROM "public"."_Likes" WHERE ("public"."_Likes"."A" = $1 AND "public"."_Likes"."B" IN ($2));
-- $ 'dddddddd-0000-4000-8000-000000000001', 2
