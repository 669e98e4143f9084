-- find
select h1_0.id,h1_0.city,h1_0.name,h1_0.stars from hotel h1_0 where h1_0.id=$1;
-- $ 1
-- find by a uuid
select g1_0.id,g1_0.email,g1_0.points,g1_0.registered from guest g1_0 where g1_0.id=$1;
-- $ 'cccccccc-0000-4000-8000-000000000001'
-- find with an eager reference
select r1_0.id,h1_0.id,h1_0.city,h1_0.name,h1_0.stars,r1_0.number,r1_0.price,r1_0.version from room r1_0 left join hotel h1_0 on h1_0.id=r1_0.hotel_id where r1_0.id=$1;
-- $ 1
-- find with a reference that isn't optional
select r1_0.id,h1_0.id,h1_0.name,r1_0.number,r1_0.price,r1_0.version from room r1_0 join hotel h1_0 on h1_0.id=r1_0.hotel_id where r1_0.id=$1;
-- $ 3
-- find with two references
select b1_0.id,b1_0.day,g1_0.id,g1_0.email,r1_0.id,r1_0.number,b1_0.status,b1_0.version from booking b1_0 left join guest g1_0 on g1_0.id=b1_0.guest_id left join room r1_0 on r1_0.id=b1_0.room_id where b1_0.id=$1;
-- $ 1
-- findByEmail
select g1_0.id,g1_0.email,g1_0.points,g1_0.registered from guest g1_0 where g1_0.email=$1;
-- $ 'ann@example.com'
-- findByStatusAndDay
select b1_0.id,b1_0.day,b1_0.status,b1_0.version from booking b1_0 where b1_0.status=$1 and b1_0.day=$2;
-- $ 'OPEN', '2024-07-01'
-- findByStatusIn
select b1_0.id,b1_0.status from booking b1_0 where b1_0.status in ($1,$2);
-- $ 'OPEN', 'PAID'
-- findByPriceLessThan
select r1_0.id,r1_0.price from room r1_0 where r1_0.price<$1;
-- $ 100.00
-- findByDayBetween
select b1_0.id,b1_0.day from booking b1_0 where b1_0.day between $1 and $2;
-- $ '2024-07-01', '2024-07-31'
-- findByRegisteredAfter
select g1_0.id,g1_0.registered from guest g1_0 where g1_0.registered>$1;
-- $ '2023-12-31 00:00:00+00'
-- findByNameContaining
select h1_0.id,h1_0.name from hotel h1_0 where h1_0.name like $1 escape '\';
-- $ '%ra%'
-- findByNameIgnoreCase
select h1_0.id,h1_0.name from hotel h1_0 where upper(h1_0.name)=upper($1);
-- $ 'grand'
-- findFirstByOrderByIdDesc
select b1_0.id,b1_0.status from booking b1_0 order by b1_0.id desc fetch first $1 rows only;
-- $ 1
-- findTop3ByOrderByPrice
select r1_0.id,r1_0.price from room r1_0 order by r1_0.price fetch first $1 rows only;
-- $ 2
-- existsByEmail
select g1_0.id from guest g1_0 where g1_0.email=$1 fetch first $2 rows only;
-- $ 'dan@example.com', 1
-- existsById
select count(*) from guest g1_0 where g1_0.id=$1;
-- $ 'cccccccc-0000-4000-8000-000000000001'
-- countByStatus
select count(b1_0.id) from booking b1_0 where b1_0.status=$1;
-- $ 'OPEN'
-- a sum
select sum(r1_0.price) from booking b1_0 join room r1_0 on r1_0.id=b1_0.room_id where b1_0.guest_id=$1;
-- $ 'cccccccc-0000-4000-8000-000000000001'
-- coalesce of a maximum
select coalesce(max(r1_0.number),0) from room r1_0 where r1_0.hotel_id=$1;
-- $ 1
-- a collection
select r1_0.hotel_id,r1_0.id,r1_0.number,r1_0.price,r1_0.version from room r1_0 where r1_0.hotel_id=$1;
-- $ 1
-- a collection of values
select e1_0.booking_id,e1_0.extra from booking_extras e1_0 where e1_0.booking_id=$1;
-- $ 1
-- a batch
select h1_0.id,h1_0.city,h1_0.name,h1_0.stars from hotel h1_0 where h1_0.id = any ($1);
-- $ '{1,2}'
-- a batch with in
select r1_0.hotel_id,r1_0.id,r1_0.number from room r1_0 where r1_0.hotel_id in ($1,$2);
-- $ 1, 2
-- join fetch
select h1_0.id,h1_0.name,r1_0.hotel_id,r1_0.id,r1_0.number from hotel h1_0 join room r1_0 on h1_0.id=r1_0.hotel_id where h1_0.id=$1;
-- $ 1
-- left join fetch
select h1_0.id,h1_0.name,r1_0.hotel_id,r1_0.id,r1_0.number from hotel h1_0 left join room r1_0 on h1_0.id=r1_0.hotel_id where h1_0.stars>=$1;
-- $ 3
-- a path across a reference
select b1_0.id,b1_0.status from booking b1_0 join guest g1_0 on g1_0.id=b1_0.guest_id where g1_0.email=$1;
-- $ 'ann@example.com'
-- a path across two
select b1_0.id,b1_0.status from booking b1_0 join room r1_0 on r1_0.id=b1_0.room_id where r1_0.hotel_id=$1 and b1_0.day=$2;
-- $ 1, '2024-07-01'
-- exists
select g1_0.id,g1_0.email from guest g1_0 where exists(select 1 from booking b1_0 where b1_0.guest_id=g1_0.id and b1_0.status='OPEN');
-- not exists
select r1_0.id,r1_0.number from room r1_0 where r1_0.hotel_id=$1 and not exists(select 1 from booking b1_0 where b1_0.room_id=r1_0.id and b1_0.day=$2);
-- $ 1, '2024-07-01'
-- is there any
select count(*)>0 from booking b1_0 where b1_0.room_id=$1 and b1_0.day=$2 and b1_0.status<>'CANCELLED';
-- $ 1, '2024-07-02'
-- a page
select r1_0.id,r1_0.number from room r1_0 order by r1_0.id offset $1 rows fetch first $2 rows only;
-- $ 0, 2
-- the first page
select b1_0.id,b1_0.day from booking b1_0 where b1_0.status=$1 order by b1_0.day desc,b1_0.id fetch first $2 rows only;
-- $ 'OPEN', 2
-- distinct
select distinct h1_0.city from hotel h1_0;
-- PESSIMISTIC_WRITE
select r1_0.id,r1_0.hotel_id,r1_0.number,r1_0.price,r1_0.version from room r1_0 where r1_0.id=$1 for no key update;
-- $ 1
-- PESSIMISTIC_READ
select r1_0.id,r1_0.price from room r1_0 where r1_0.id=$1 for share;
-- $ 1
-- PESSIMISTIC_WRITE of a query
select g1_0.id,g1_0.points from guest g1_0 where g1_0.email=$1 for no key update nowait;
-- $ 'ann@example.com'
-- PESSIMISTIC_FORCE_INCREMENT
update room set version=$1 where id=$2 and version=$3;
-- $ 1, 1, 0
-- OPTIMISTIC at the end
select r1_0.version from room r1_0 where r1_0.id=$1;
-- $ 1
-- a sequence
select nextval('booking_seq');
-- persist
insert into booking (day,guest_id,room_id,status,version,id) values ($1,$2,$3,$4,$5,$6);
-- $ '2024-08-01', 'cccccccc-0000-4000-8000-000000000002', 1, 'OPEN', 0, 51
-- a value of a collection
insert into booking_extras (booking_id,extra) values ($1,$2);
-- $ 3, 'sauna'
-- merge
update guest set email=$1,points=$2,registered=$3 where id=$4;
-- $ 'ann@example.com', 90, '2024-01-01 00:00:00+00', 'cccccccc-0000-4000-8000-000000000001'
-- flush with @Version
update booking set day=$1,guest_id=$2,room_id=$3,status=$4,version=$5 where id=$6 and version=$7;
-- $ '2024-07-01', 'cccccccc-0000-4000-8000-000000000001', 1, 'PAID', 1, 1, 0
-- update of a query
update guest g1_0 set points=(g1_0.points+$1) where g1_0.id=$2;
-- $ 10, 'cccccccc-0000-4000-8000-000000000002'
-- update of a query with a condition
update booking b1_0 set status='CANCELLED' where b1_0.status='OPEN' and b1_0.day<$1;
-- $ '2024-07-02'
-- remove
delete from booking_extras where booking_id=$1 and extra=$2;
-- $ 1, 'breakfast'
-- remove with @Version
delete from booking where id=$1 and version=$2;
-- $ 3, 1
-- delete of a query
delete from booking_extras e1_0 where e1_0.booking_id=$1;
-- $ 2
