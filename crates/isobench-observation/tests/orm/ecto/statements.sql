-- Repo.get
SELECT u0."id", u0."email", u0."name", u0."coins", u0."lock_version", u0."inserted_at", u0."updated_at" FROM "users" AS u0 WHERE (u0."id" = $1);
-- $ 1
-- Repo.get by a uuid
SELECT w0."id", w0."user_id", w0."amount" FROM "wallets" AS w0 WHERE (w0."id" = $1);
-- $ 'eeeeeeee-0000-4000-8000-000000000001'
-- Repo.get_by
SELECT u0."id", u0."email", u0."coins" FROM "users" AS u0 WHERE (u0."email" = $1);
-- $ 'ann@example.com'
-- Repo.get_by of two fields
SELECT p0."id", p0."title", p0."votes" FROM "posts" AS p0 WHERE (p0."title" = $1) AND (p0."user_id" = $2);
-- $ 'One', 1
-- Repo.all
SELECT p0."id", p0."title", p0."votes", p0."user_id" FROM "posts" AS p0 WHERE (p0."user_id" = $1);
-- $ 1
-- Repo.all in an order
SELECT p0."id", p0."title" FROM "posts" AS p0 WHERE (p0."votes" > $1) ORDER BY p0."inserted_at" DESC;
-- $ 0
-- a list
SELECT u0."id", u0."email" FROM "users" AS u0 WHERE (u0."id" = ANY($1));
-- $ '{1,2}'
-- preload of many
SELECT p0."id", p0."title", p0."user_id", p0."user_id" FROM "posts" AS p0 WHERE (p0."user_id" = ANY($1)) ORDER BY p0."user_id";
-- $ '{1,2}'
-- preload of one
SELECT u0."id", u0."email", u0."id" FROM "users" AS u0 WHERE (u0."id" = $1);
-- $ 2
-- is_nil
SELECT u0."id" FROM "users" AS u0 WHERE (u0."name" IS NULL);
-- not
SELECT p0."id" FROM "posts" AS p0 WHERE (NOT (p0."votes" = $1));
-- $ 0
-- or
SELECT p0."id" FROM "posts" AS p0 WHERE ((p0."votes" >= $1) OR (p0."title" = $2));
-- $ 5, 'One'
-- a time
SELECT p0."id", p0."inserted_at" FROM "posts" AS p0 WHERE (p0."inserted_at" >= $1) AND (p0."inserted_at" < $2);
-- $ '2024-02-01 00:00:00', '2024-02-02 00:00:00'
-- ago
SELECT p0."id" FROM "posts" AS p0 WHERE (p0."inserted_at" > $1::timestamp + (-7::numeric * interval '1 day'));
-- $ '2024-02-09 00:00:00'
-- a decimal
SELECT w0."id", w0."amount" FROM "wallets" AS w0 WHERE (w0."amount" > $1);
-- $ 1.5
-- like
SELECT p0."id", p0."title" FROM "posts" AS p0 WHERE (p0."title" LIKE $1);
-- $ '%e'
-- ilike
SELECT u0."id", u0."email" FROM "users" AS u0 WHERE (u0."email" ILIKE $1);
-- $ 'ANN%'
-- a fragment
SELECT u0."id", u0."email" FROM "users" AS u0 WHERE (lower(u0."email") = lower($1));
-- $ 'ANN@example.com'
-- limit: 1
SELECT p0."id", p0."title" FROM "posts" AS p0 WHERE (p0."user_id" = $1) LIMIT 1;
-- $ 1
-- first()
SELECT p0."id", p0."title" FROM "posts" AS p0 ORDER BY p0."id" LIMIT 1;
-- last()
SELECT p0."id", p0."title" FROM "posts" AS p0 ORDER BY p0."id" DESC LIMIT 1;
-- a page
SELECT p0."id", p0."title" FROM "posts" AS p0 ORDER BY p0."inserted_at" DESC, p0."id" DESC LIMIT $1 OFFSET $2;
-- $ 2, 0
-- keyset pagination
SELECT p0."id", p0."title" FROM "posts" AS p0 WHERE ((p0."id" < $1)) ORDER BY p0."id" DESC LIMIT $2;
-- $ 3, 1
-- Repo.exists?
SELECT TRUE FROM "users" AS u0 WHERE (u0."email" = $1) LIMIT 1;
-- $ 'dan@example.com'
-- unsafe_validate_unique
SELECT TRUE FROM "users" AS u0 WHERE (u0."email" = $1) AND (NOT (u0."id" = $2)) LIMIT 1;
-- $ 'ann@example.com', 1
-- Repo.aggregate count
SELECT count(*) FROM "posts" AS p0 WHERE (p0."user_id" = $1);
-- $ 1
-- Repo.aggregate sum
SELECT sum(p0."votes") FROM "posts" AS p0 WHERE (p0."user_id" = $1);
-- $ 1
-- coalesce
SELECT coalesce(sum(w0."amount"), 0) FROM "wallets" AS w0 WHERE (w0."user_id" = $1);
-- $ 1
-- group_by
SELECT p0."user_id", count(p0."id") FROM "posts" AS p0 GROUP BY p0."user_id";
-- join
SELECT p0."id", p0."title", u1."id", u1."email" FROM "posts" AS p0 INNER JOIN "users" AS u1 ON u1."id" = p0."user_id" WHERE (p0."votes" > $1);
-- $ 0
-- join with a condition
SELECT p0."id", p0."title" FROM "posts" AS p0 INNER JOIN "users" AS u1 ON u1."id" = p0."user_id" WHERE (u1."email" = $1);
-- $ 'bob@example.com'
-- assoc
SELECT c0."id", c0."body" FROM "comments" AS c0 INNER JOIN "posts" AS p1 ON p1."id" = c0."post_id" WHERE (p1."id" = $1);
-- $ 1
-- left_join
SELECT u0."id", u0."email", p1."id", p1."title" FROM "users" AS u0 LEFT OUTER JOIN "posts" AS p1 ON p1."user_id" = u0."id" WHERE (u0."id" = $1);
-- $ 2
-- left_join of two
SELECT u0."id", p1."id", c2."id", c2."body" FROM "users" AS u0 LEFT OUTER JOIN "posts" AS p1 ON p1."user_id" = u0."id" LEFT OUTER JOIN "comments" AS c2 ON c2."post_id" = p1."id" WHERE (u0."coins" >= $1);
-- $ 0
-- exists
SELECT u0."id" FROM "users" AS u0 WHERE (exists((SELECT 1 AS "result" FROM "posts" AS sp0 WHERE (sp0."user_id" = u0."id") AND (sp0."votes" > $1))));
-- $ 5
-- subquery
SELECT u0."id", s1."n" FROM "users" AS u0 INNER JOIN (SELECT sp0."user_id" AS "user_id", count(sp0."id") AS "n" FROM "posts" AS sp0 GROUP BY sp0."user_id") AS s1 ON s1."user_id" = u0."id";
-- distinct
SELECT DISTINCT p0."user_id" FROM "posts" AS p0;
-- lock
SELECT u0."id", u0."coins" FROM "users" AS u0 WHERE (u0."id" = $1) FOR UPDATE;
-- $ 1
-- lock of several
SELECT w0."id", w0."amount" FROM "wallets" AS w0 WHERE (w0."user_id" = ANY($1)) ORDER BY w0."id" FOR UPDATE;
-- $ '{1,2}'
-- Repo.insert
INSERT INTO "posts" ("title","votes","user_id","inserted_at","updated_at") VALUES ($1,$2,$3,$4,$5) RETURNING "id";
-- $ 'New', 0, 1, '2024-06-01 00:00:00', '2024-06-01 00:00:00'
-- Repo.insert_all
INSERT INTO "comments" ("body","post_id","inserted_at") VALUES ($1,$2,$3),($4,$5,$6);
-- $ 'x', 1, '2024-06-01 00:00:00', 'y', 2, '2024-06-01 00:00:00'
-- on_conflict: :nothing
INSERT INTO "users" ("email","coins","inserted_at","updated_at") VALUES ($1,$2,$3,$4) ON CONFLICT DO NOTHING RETURNING "id";
-- $ 'ann@example.com', 0, '2024-06-01 00:00:00', '2024-06-01 00:00:00'
-- on_conflict: inc
INSERT INTO "users" AS u0 ("email","coins","inserted_at","updated_at") VALUES ($1,$2,$3,$4) ON CONFLICT ("email") DO UPDATE SET "coins" = u0."coins" + $5 RETURNING "id";
-- $ 'ann@example.com', 1, '2024-06-01 00:00:00', '2024-06-01 00:00:00', 1
-- on_conflict: replace
INSERT INTO "users" ("email","name","coins","inserted_at","updated_at") VALUES ($1,$2,$3,$4,$5) ON CONFLICT ("email") DO UPDATE SET "name" = EXCLUDED."name" RETURNING "id";
-- $ 'ann@example.com', 'Anna', 0, '2024-06-01 00:00:00', '2024-06-01 00:00:00'
-- Repo.update
UPDATE "users" SET "name" = $1, "updated_at" = $2 WHERE "id" = $3;
-- $ 'Anne', '2024-06-01 00:00:00', 1
-- optimistic_lock
UPDATE "users" SET "coins" = $1, "lock_version" = $2 WHERE "id" = $3 AND "lock_version" = $4;
-- $ 5, 2, 1, 1
-- Repo.update_all inc
UPDATE "users" AS u0 SET "coins" = u0."coins" + $1 WHERE (u0."id" = $2);
-- $ -5, 1
-- Repo.update_all with a guard
UPDATE "wallets" AS w0 SET "amount" = w0."amount" + $1 WHERE (w0."id" = $2) AND (w0."amount" >= $3) RETURNING w0."amount";
-- $ -5, 'eeeeeeee-0000-4000-8000-000000000001', 5
-- Oban takes jobs
WITH "subset" AS MATERIALIZED (SELECT so0."id" AS "id" FROM "oban_jobs" AS so0 WHERE (so0."state" = 'available') AND (so0."queue" = $1) ORDER BY so0."priority", so0."scheduled_at", so0."id" LIMIT $2 FOR UPDATE SKIP LOCKED) UPDATE "oban_jobs" AS o0 SET "state" = $3, "attempt" = o0."attempt" + 1 FROM "subset" AS f1 WHERE (o0."id" = f1."id") RETURNING o0."id", o0."queue";
-- $ 'default', 1, 'executing'
-- Repo.delete
DELETE FROM "comments" WHERE "id" = $1;
-- $ 1
-- Repo.delete of a row with others below
DELETE FROM "posts" WHERE "id" = $1;
-- $ 2
-- Repo.delete_all
DELETE FROM "comments" AS c0 WHERE (c0."post_id" = $1);
-- $ 1
