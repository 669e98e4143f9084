-- find
SELECT "users".* FROM "users" WHERE "users"."id" = $1 LIMIT $2;
-- $ 1, 1
-- find_by
SELECT "users".* FROM "users" WHERE "users"."email" = $1 LIMIT $2;
-- $ 'ann@example.com', 1
-- find_by two columns
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 AND "posts"."title" = $2 LIMIT $3;
-- $ 1, 'First', 1
-- find of several
SELECT "posts".* FROM "posts" WHERE "posts"."id" IN ($1, $2);
-- $ 1, 3
-- where
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 AND "posts"."published" = $2;
-- $ 1, true
-- where.not
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" != $1;
-- $ 1
-- default scope of soft deletion
SELECT "users".* FROM "users" WHERE "users"."deleted_at" IS NULL AND "users"."id" = $1 LIMIT $2;
-- $ 3, 1
-- first
SELECT "users".* FROM "users" ORDER BY "users"."id" ASC LIMIT $1;
-- $ 1
-- last
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 ORDER BY "posts"."id" DESC LIMIT $2;
-- $ 1, 1
-- take
SELECT "users".* FROM "users" LIMIT $1;
-- $ 1
-- exists? of a validation
SELECT 1 AS one FROM "users" WHERE "users"."email" = $1 LIMIT $2;
-- $ 'dan@example.com', 1
-- exists? of a validation at an update
SELECT 1 AS one FROM "users" WHERE "users"."email" = $1 AND "users"."id" != $2 LIMIT $3;
-- $ 'ann@example.com', 1, 1
-- exists? without regard to case
SELECT 1 AS one FROM "users" WHERE LOWER("users"."email") = LOWER($1) LIMIT $2;
-- $ 'Ann@example.com', 1
-- count
SELECT COUNT(*) FROM "comments" WHERE "comments"."post_id" = $1;
-- $ 1
-- count of a page
SELECT COUNT(*) FROM (SELECT 1 AS one FROM "posts" WHERE "posts"."published" = $1 LIMIT $2) subquery_for_count;
-- $ true, 10
-- sum
SELECT SUM("posts"."likes") FROM "posts" WHERE "posts"."user_id" = $1;
-- $ 1
-- maximum
SELECT MAX("posts"."likes") FROM "posts" WHERE "posts"."user_id" = $1;
-- $ 1
-- group.count
SELECT COUNT(*) AS "count_all", "posts"."user_id" AS "posts_user_id" FROM "posts" GROUP BY "posts"."user_id";
-- pluck
SELECT "users"."id", "users"."credits" FROM "users" WHERE "users"."admin" = $1;
-- $ false
-- pick
SELECT "users"."credits" FROM "users" WHERE "users"."id" = $1 LIMIT $2;
-- $ 1, 1
-- belongs_to
SELECT "users".* FROM "users" WHERE "users"."id" = $1 LIMIT $2;
-- $ 2, 1
-- has_many
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 ORDER BY "posts"."created_at" DESC;
-- $ 1
-- has_many through
SELECT "tags".* FROM "tags" INNER JOIN "taggings" ON "tags"."id" = "taggings"."tag_id" WHERE "taggings"."taggable_id" = $1 AND "taggings"."taggable_type" = $2;
-- $ 1, 'Post'
-- includes
SELECT "comments".* FROM "comments" WHERE "comments"."post_id" IN ($1, $2, $3);
-- $ 1, 2, 3
-- eager_load
SELECT "posts"."id" AS t0_r0, "posts"."user_id" AS t0_r1, "posts"."title" AS t0_r2, "comments"."id" AS t1_r0, "comments"."post_id" AS t1_r1, "comments"."body" AS t1_r2 FROM "posts" LEFT OUTER JOIN "comments" ON "comments"."post_id" = "posts"."id" WHERE "posts"."user_id" = $1;
-- $ 1
-- eager_load of two
SELECT "posts"."id" AS t0_r0, "posts"."title" AS t0_r1, "comments"."id" AS t1_r0, "comments"."body" AS t1_r1, "users"."id" AS t2_r0, "users"."name" AS t2_r1 FROM "posts" LEFT OUTER JOIN "comments" ON "comments"."post_id" = "posts"."id" LEFT OUTER JOIN "users" ON "users"."id" = "comments"."user_id" WHERE "posts"."id" = $1;
-- $ 1
-- joins
SELECT "comments".* FROM "comments" INNER JOIN "posts" ON "posts"."id" = "comments"."post_id" WHERE "comments"."user_id" = $1;
-- $ 1
-- joins with a condition on the other table
SELECT "comments".* FROM "comments" INNER JOIN "posts" ON "posts"."id" = "comments"."post_id" WHERE "posts"."user_id" = $1;
-- $ 1
-- distinct
SELECT DISTINCT "posts"."user_id" FROM "posts" WHERE "posts"."published" = $1;
-- $ true
-- where with a subquery
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" IN (SELECT "users"."id" FROM "users" WHERE "users"."admin" = $1);
-- $ true
-- order and limit
SELECT "posts".* FROM "posts" WHERE "posts"."published" = $1 ORDER BY "posts"."created_at" DESC LIMIT $2;
-- $ true, 1
-- order by a count of likes
SELECT "posts".* FROM "posts" ORDER BY "posts"."likes" DESC, "posts"."id" ASC LIMIT $1;
-- $ 2
-- limit and offset
SELECT "posts".* FROM "posts" ORDER BY "posts"."id" ASC LIMIT $1 OFFSET $2;
-- $ 2, 1
-- find_each
SELECT "users".* FROM "users" WHERE "users"."id" > $1 ORDER BY "users"."id" ASC LIMIT $2;
-- $ 0, 2
-- a range of times
SELECT "posts".* FROM "posts" WHERE "posts"."created_at" BETWEEN $1 AND $2;
-- $ '2024-02-01 00:00:00', '2024-02-02 00:00:00'
-- lock!
SELECT "users".* FROM "users" WHERE "users"."id" = $1 LIMIT $2 FOR UPDATE;
-- $ 1, 1
-- lock of several
SELECT "users".* FROM "users" WHERE "users"."id" IN ($1, $2) ORDER BY "users"."id" ASC FOR UPDATE;
-- $ 1, 2
-- lock("FOR UPDATE SKIP LOCKED")
SELECT "good_jobs".* FROM "good_jobs" WHERE "good_jobs"."finished_at" IS NULL ORDER BY "good_jobs"."priority" ASC LIMIT $1 FOR UPDATE SKIP LOCKED;
-- $ 1
-- an advisory lock
SELECT pg_advisory_xact_lock($1);
-- $ 7
-- create
INSERT INTO "posts" ("user_id", "title", "published", "likes", "created_at", "updated_at") VALUES ($1, $2, $3, $4, $5, $6) RETURNING "id";
-- $ 1, 'New', false, 0, '2024-06-01 10:00:00', '2024-06-01 10:00:00'
-- insert_all
INSERT INTO "taggings" ("tag_id","taggable_type","taggable_id") VALUES (1, 'Post', 2), (2, 'Post', 2) ON CONFLICT DO NOTHING RETURNING "id";
-- upsert_all
INSERT INTO "users" ("email","name","created_at","updated_at") VALUES ('ann@example.com', 'Anna', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP) ON CONFLICT ("email") DO UPDATE SET updated_at=(CASE WHEN ("users"."name" IS NOT DISTINCT FROM excluded."name") THEN "users".updated_at ELSE CURRENT_TIMESTAMP END),"name"=excluded."name" RETURNING "id";
-- a row of has_and_belongs_to_many
INSERT INTO "posts_users" ("post_id", "user_id") VALUES ($1, $2);
-- $ 3, 1
-- update
UPDATE "users" SET "name" = $1, "updated_at" = $2 WHERE "users"."id" = $3;
-- $ 'Anne', '2024-06-01 10:00:00', 1
-- update with lock_version
UPDATE "users" SET "credits" = $1, "updated_at" = $2, "lock_version" = $3 WHERE "users"."id" = $4 AND "users"."lock_version" = $5;
-- $ 9, '2024-06-01 10:00:00', 1, 1, 0
-- increment_counter
UPDATE "users" SET "posts_count" = COALESCE("users"."posts_count", 0) + $1 WHERE "users"."id" = $2;
-- $ 1, 1
-- update_all with a condition
UPDATE "users" SET credits = credits - 3 WHERE "users"."id" = $1 AND (credits >= 3);
-- $ 1
-- touch
UPDATE "posts" SET "updated_at" = $1 WHERE "posts"."id" = $2;
-- $ '2024-06-01 10:00:00', 1
-- update_all of a page
UPDATE "posts" SET "published" = $1 WHERE "posts"."id" IN (SELECT "posts"."id" FROM "posts" WHERE "posts"."published" = $2 ORDER BY "posts"."id" ASC LIMIT $3);
-- $ true, false, 1
-- destroy
DELETE FROM "comments" WHERE "comments"."id" = $1;
-- $ 1
-- delete_all
DELETE FROM "comments" WHERE "comments"."post_id" = $1;
-- $ 1
