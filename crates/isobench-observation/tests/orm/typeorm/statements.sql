-- findOneBy
SELECT "Event"."id" AS "Event_id", "Event"."name" AS "Event_name", "Event"."startsAt" AS "Event_startsAt", "Event"."capacity" AS "Event_capacity" FROM "event" "Event" WHERE (("Event"."id" = $1)) LIMIT 1;
-- $ 1
-- findOneBy a uuid
SELECT "User"."id" AS "User_id", "User"."email" AS "User_email", "User"."isActive" AS "User_isActive", "User"."credit" AS "User_credit", "User"."version" AS "User_version" FROM "user" "User" WHERE (("User"."id" = $1)) LIMIT 1;
-- $ 'ffffffff-0000-4000-8000-000000000001'
-- findOneBy a text
SELECT "User"."id" AS "User_id", "User"."email" AS "User_email" FROM "user" "User" WHERE (("User"."email" = $1)) LIMIT 1;
-- $ 'ann@example.com'
-- findOneBy two columns
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."seat" AS "Ticket_seat", "Ticket"."status" AS "Ticket_status" FROM "ticket" "Ticket" WHERE ( ((("Ticket"."seat" = $1) AND ("Ticket"."eventId" = $2))) ) AND ( "Ticket"."deletedAt" IS NULL ) LIMIT 1;
-- $ 'A1', 1
-- findBy
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."seat" AS "Ticket_seat" FROM "ticket" "Ticket" WHERE ( ((("Ticket"."eventId" = $1))) ) AND ( "Ticket"."deletedAt" IS NULL );
-- $ 1
-- find
SELECT "Event"."id" AS "Event_id", "Event"."name" AS "Event_name" FROM "event" "Event";
-- In
SELECT "Event"."id" AS "Event_id", "Event"."name" AS "Event_name" FROM "event" "Event" WHERE (("Event"."id" IN ($1, $2)));
-- $ 1, 2
-- an enum
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."status" AS "Ticket_status" FROM "ticket" "Ticket" WHERE ( ((("Ticket"."status" = $1) AND ("Ticket"."eventId" = $2))) ) AND ( "Ticket"."deletedAt" IS NULL );
-- $ 'free', 1
-- Not
SELECT "Ticket"."id" AS "Ticket_id" FROM "ticket" "Ticket" WHERE ((NOT("Ticket"."status" = $1)));
-- $ 'sold'
-- MoreThan
SELECT "Event"."id" AS "Event_id" FROM "event" "Event" WHERE (("Event"."startsAt" > $1));
-- $ '2024-09-01 12:00:00+00'
-- LessThanOrEqual
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."price" AS "Ticket_price" FROM "ticket" "Ticket" WHERE (("Ticket"."price" <= $1));
-- $ 20.00
-- Between
SELECT "Event"."id" AS "Event_id" FROM "event" "Event" WHERE (("Event"."capacity" BETWEEN $1 AND $2));
-- $ 1, 2
-- IsNull
SELECT "Ticket"."id" AS "Ticket_id" FROM "ticket" "Ticket" WHERE (("Ticket"."ownerId" IS NULL));
-- Like
SELECT "Event"."id" AS "Event_id" FROM "event" "Event" WHERE (("Event"."name" LIKE $1));
-- $ '%on%'
-- ILike
SELECT "User"."id" AS "User_id" FROM "user" "User" WHERE (("User"."email" ILIKE $1));
-- $ '%EXAMPLE%'
-- an array of conditions
SELECT "User"."id" AS "User_id" FROM "user" "User" WHERE ((("User"."credit" > $1)) OR (("User"."isActive" = $2)));
-- $ 5, false
-- order and take
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."price" AS "Ticket_price" FROM "ticket" "Ticket" WHERE ( "Ticket"."deletedAt" IS NULL ) ORDER BY "Ticket"."id" DESC LIMIT 1;
-- order by a price
SELECT "Ticket"."id" AS "Ticket_id" FROM "ticket" "Ticket" WHERE (("Ticket"."eventId" = $1)) ORDER BY "Ticket"."price" ASC, "Ticket"."id" ASC LIMIT 1;
-- $ 1
-- skip and take
SELECT "Ticket"."id" AS "Ticket_id" FROM "ticket" "Ticket" ORDER BY "Ticket"."id" ASC LIMIT 1 OFFSET 1;
-- order by the alias of a column
SELECT "Event"."id" AS "Event_id", "Event"."startsAt" AS "Event_startsAt" FROM "event" "Event" ORDER BY "Event_startsAt" DESC LIMIT 1;
-- count
SELECT COUNT(1) AS "cnt" FROM "ticket" "Ticket" WHERE (("Ticket"."eventId" = $1));
-- $ 1
-- count of different keys
SELECT COUNT(DISTINCT("Ticket"."id")) AS "cnt" FROM "ticket" "Ticket" WHERE (("Ticket"."status" = $1));
-- $ 'sold'
-- sum
SELECT SUM("price") AS "SUM" FROM "ticket" "Ticket" WHERE (("Ticket"."eventId" = $1));
-- $ 1
-- exists
SELECT 1 AS "row_exists" FROM (SELECT 1 AS dummy_column) "dummy_table" WHERE EXISTS (SELECT 1 FROM "user" "User" WHERE (("User"."email" = $1))) LIMIT 1;
-- $ 'dan@example.com'
-- relations
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."seat" AS "Ticket_seat", "Ticket__Ticket_event"."id" AS "Ticket__Ticket_event_id", "Ticket__Ticket_event"."name" AS "Ticket__Ticket_event_name" FROM "ticket" "Ticket" LEFT JOIN "event" "Ticket__Ticket_event" ON "Ticket__Ticket_event"."id"="Ticket"."eventId" WHERE ( (("Ticket"."status" = $1)) ) AND ( "Ticket"."deletedAt" IS NULL );
-- $ 'free'
-- relations of two
SELECT "Ticket"."id" AS "Ticket_id", "Ticket__Ticket_event"."id" AS "Ticket__Ticket_event_id", "Ticket__Ticket_owner"."id" AS "Ticket__Ticket_owner_id", "Ticket__Ticket_owner"."email" AS "Ticket__Ticket_owner_email" FROM "ticket" "Ticket" LEFT JOIN "event" "Ticket__Ticket_event" ON "Ticket__Ticket_event"."id"="Ticket"."eventId" LEFT JOIN "user" "Ticket__Ticket_owner" ON "Ticket__Ticket_owner"."id"="Ticket"."ownerId" WHERE (("Ticket"."eventId" = $1));
-- $ 1
-- relations of many
SELECT "Event"."id" AS "Event_id", "Event"."name" AS "Event_name", "Event__Event_tickets"."id" AS "Event__Event_tickets_id", "Event__Event_tickets"."seat" AS "Event__Event_tickets_seat" FROM "event" "Event" LEFT JOIN "ticket" "Event__Event_tickets" ON "Event__Event_tickets"."eventId"="Event"."id" AND ("Event__Event_tickets"."deletedAt" IS NULL) WHERE (("Event"."id" = $1));
-- $ 1
-- relations with take
SELECT DISTINCT "distinctAlias"."Event_id" AS "ids_Event_id" FROM (SELECT "Event"."id" AS "Event_id", "Event"."name" AS "Event_name", "Event__Event_tickets"."id" AS "Event__Event_tickets_id" FROM "event" "Event" LEFT JOIN "ticket" "Event__Event_tickets" ON "Event__Event_tickets"."eventId"="Event"."id" WHERE (("Event"."id" = $1))) "distinctAlias" ORDER BY "Event_id" ASC LIMIT 1;
-- $ 1
-- many to many
SELECT "event"."id" AS "event_id", "event"."name" AS "event_name" FROM "event" "event" INNER JOIN "user_events_event" "user_events_event" ON "user_events_event"."userId" IN ($1) AND "user_events_event"."eventId"="event"."id";
-- $ 'ffffffff-0000-4000-8000-000000000001'
-- innerJoin
SELECT "ticket"."id" AS "ticket_id", "ticket"."seat" AS "ticket_seat" FROM "ticket" "ticket" INNER JOIN "event" "event" ON "event"."id"="ticket"."eventId" WHERE "ticket"."status" = $1;
-- $ 'free'
-- innerJoin with a condition
SELECT "ticket"."id" AS "ticket_id", "ticket"."seat" AS "ticket_seat" FROM "ticket" "ticket" INNER JOIN "event" "event" ON "event"."id"="ticket"."eventId" WHERE "event"."name" = $1;
-- $ 'Play'
-- a query builder's subquery
SELECT "event"."id" AS "event_id" FROM "event" "event" WHERE "event"."id" IN (SELECT "ticket"."eventId" FROM "ticket" "ticket" WHERE "ticket"."status" = $1);
-- $ 'free'
-- pessimistic_write
SELECT "Ticket"."id" AS "Ticket_id", "Ticket"."status" AS "Ticket_status" FROM "ticket" "Ticket" WHERE (("Ticket"."id" = $1)) LIMIT 1 FOR UPDATE;
-- $ 1
-- pessimistic_read
SELECT "Event"."id" AS "Event_id", "Event"."capacity" AS "Event_capacity" FROM "event" "Event" WHERE (("Event"."id" = $1)) LIMIT 1 FOR SHARE;
-- $ 1
-- pessimistic_partial_write
SELECT "Ticket"."id" AS "Ticket_id" FROM "ticket" "Ticket" WHERE (("Ticket"."status" = $1)) LIMIT 1 FOR UPDATE SKIP LOCKED;
-- $ 'free'
-- a check before save
SELECT "User"."id" AS "User_id", "User"."email" AS "User_email", "User"."version" AS "User_version" FROM "user" "User" WHERE "User"."id" IN ($1);
-- $ 'ffffffff-0000-4000-8000-000000000002'
-- save of a new row
INSERT INTO "ticket"("seat", "status", "price", "createdAt", "deletedAt", "eventId", "ownerId") VALUES ($1, DEFAULT, $2, DEFAULT, DEFAULT, $3, DEFAULT) RETURNING "id", "status", "createdAt", "deletedAt";
-- $ 'C1', 10, 1
-- save of a new row with a uuid
INSERT INTO "user"("id", "email", "isActive", "credit", "version") VALUES (DEFAULT, $1, DEFAULT, DEFAULT, 1) RETURNING "id", "isActive", "credit", "version";
-- $ 'dan@example.com'
-- save of several
INSERT INTO "event"("name", "startsAt", "capacity") VALUES ($1, $2, $3), ($4, $5, $6) RETURNING "id";
-- $ 'X', '2024-10-01 00:00:00+00', 1, 'Y', '2024-10-02 00:00:00+00', 2
-- upsert
INSERT INTO "user"("id", "email", "isActive", "credit", "version") VALUES (DEFAULT, $1, DEFAULT, $2, 1) ON CONFLICT ( "email" ) DO UPDATE SET "credit" = EXCLUDED."credit" RETURNING "id", "version";
-- $ 'ann@example.com', 11
-- orIgnore
INSERT INTO "user_events_event"("userId", "eventId") VALUES ($1, $2) ON CONFLICT DO NOTHING;
-- $ 'ffffffff-0000-4000-8000-000000000001', 1
-- save of a change
UPDATE "ticket" SET "status" = $1, "ownerId" = $2 WHERE "id" IN ($3);
-- $ 'sold', 'ffffffff-0000-4000-8000-000000000001', 1
-- save with a version
UPDATE "user" SET "credit" = $1, "version" = "version" + 1 WHERE "id" IN ($2) RETURNING "version";
-- $ 9, 'ffffffff-0000-4000-8000-000000000001'
-- increment
UPDATE "user" SET "credit" = "credit" + 1 WHERE "id" = $1;
-- $ 'ffffffff-0000-4000-8000-000000000002'
-- update with a guard
UPDATE "ticket" SET "status" = $1 WHERE "id" = $2 AND "status" = $3;
-- $ 'held', 1, 'free'
-- softDelete
UPDATE "ticket" SET "deletedAt" = CURRENT_TIMESTAMP WHERE "id" = $1;
-- $ 1
-- delete
DELETE FROM "ticket" WHERE "id" = $1;
-- $ 3
-- delete of many to many
DELETE FROM "user_events_event" WHERE "userId" = $1 AND "eventId" = $2;
-- $ 'ffffffff-0000-4000-8000-000000000001', 1
