-- Session.get()
SELECT users.id AS users_id, users.email AS users_email, users.name AS users_name, users.balance AS users_balance, users.version_id AS users_version_id, users.created_at AS users_created_at FROM users WHERE users.id = $1::INTEGER;
-- $ 1
-- Session.get() by a uuid
SELECT accounts.id AS accounts_id, accounts.owner_id AS accounts_owner_id, accounts.amount AS accounts_amount FROM accounts WHERE accounts.id = $1::UUID;
-- $ 'aaaaaaaa-0000-4000-8000-000000000001'
-- Session.get() by a key of two columns
SELECT memberships.user_id AS memberships_user_id, memberships.team_id AS memberships_team_id, memberships.role AS memberships_role FROM memberships WHERE memberships.user_id = $1::INTEGER AND memberships.team_id = $2::INTEGER;
-- $ 2, 1
-- refresh
SELECT users.id, users.email, users.name, users.balance, users.version_id, users.created_at FROM users WHERE users.id = $1::INTEGER;
-- $ 2
-- select().where()
SELECT users.id, users.email, users.name FROM users WHERE users.email = $1::VARCHAR;
-- $ 'ann@example.com'
-- one_or_none() of two columns
SELECT addresses.id, addresses.user_id, addresses.city, addresses.main FROM addresses WHERE addresses.user_id = $1::INTEGER AND addresses.city = $2::VARCHAR;
-- $ 1, 'Rome'
-- first()
SELECT users.id, users.email FROM users WHERE users.name = $1::VARCHAR LIMIT $2::INTEGER;
-- $ 'Ann', 1
-- in_()
SELECT users.id, users.email FROM users WHERE users.id IN ($1::INTEGER, $2::INTEGER);
-- $ 1, 3
-- in_() of nothing
SELECT users.id FROM users WHERE users.id IN (NULL) AND (1 != 1);
-- or_()
SELECT users.id, users.balance FROM users WHERE users.balance < $1::INTEGER OR users.name IS NULL;
-- $ 60
-- between()
SELECT entries.id, entries.amount FROM entries WHERE entries.booked BETWEEN $1::DATE AND $2::DATE;
-- $ '2024-02-01', '2024-02-02'
-- is_(True)
SELECT addresses.id, addresses.city FROM addresses WHERE addresses.user_id = $1::INTEGER AND addresses.main IS true;
-- $ 1
-- like()
SELECT users.id, users.name FROM users WHERE users.name LIKE $1::VARCHAR;
-- $ 'A%'
-- ilike()
SELECT users.id, users.name FROM users WHERE users.name ILIKE $1::VARCHAR;
-- $ '%n%'
-- contains()
SELECT users.id, users.email FROM users WHERE (users.email LIKE '%' || $1::VARCHAR || '%');
-- $ 'example'
-- lower()
SELECT users.id, users.email FROM users WHERE lower(users.email) = $1::VARCHAR;
-- $ 'bob@example.com'
-- an enum
SELECT jobs.id, jobs.status FROM jobs WHERE jobs.status = $1::jobstatus AND jobs.queue = $2::VARCHAR;
-- $ 'queued', 'mail'
-- count
SELECT count(*) AS count_1 FROM users WHERE users.balance > $1::INTEGER;
-- $ 10
-- count of a query
SELECT count(*) AS count_1 FROM (SELECT users.id AS users_id, users.email AS users_email FROM users WHERE users.balance > $1::INTEGER) AS anon_1;
-- $ 10
-- sum
SELECT coalesce(sum(entries.amount), $1::INTEGER) AS coalesce_1 FROM entries WHERE entries.account_id = $2::UUID;
-- $ 0, 'aaaaaaaa-0000-4000-8000-000000000001'
-- max
SELECT max(jobs.attempts) AS max_1 FROM jobs WHERE jobs.queue = $1::VARCHAR;
-- $ 'mail'
-- exists()
SELECT EXISTS (SELECT * FROM users WHERE users.email = $1::VARCHAR) AS anon_1;
-- $ 'dan@example.com'
-- exists() the old way
SELECT EXISTS (SELECT 1 FROM addresses WHERE addresses.user_id = $1::INTEGER AND addresses.main IS true) AS anon_1;
-- $ 3
-- group_by()
SELECT addresses.city, count(addresses.id) AS n FROM addresses GROUP BY addresses.city;
-- having()
SELECT addresses.city, count(addresses.id) AS n FROM addresses GROUP BY addresses.city HAVING count(addresses.id) > $1::INTEGER;
-- $ 1
-- order_by().limit()
SELECT users.id, users.email, users.created_at FROM users ORDER BY users.created_at DESC LIMIT $1::INTEGER;
-- $ 2
-- order_by().limit().offset()
SELECT users.id, users.email FROM users ORDER BY users.id LIMIT $1::INTEGER OFFSET $2::INTEGER;
-- $ 2, 0
-- keyset pagination
SELECT users.id, users.created_at FROM users WHERE (users.created_at, users.id) > ($1::TIMESTAMP WITHOUT TIME ZONE, $2::INTEGER) ORDER BY users.created_at, users.id LIMIT $3::INTEGER;
-- $ '2024-01-01 00:00:00', 1, 1
-- lazy load of a collection
SELECT addresses.id AS addresses_id, addresses.user_id AS addresses_user_id, addresses.city AS addresses_city FROM addresses WHERE $1::INTEGER = addresses.user_id;
-- $ 1
-- selectinload()
SELECT addresses.user_id AS addresses_user_id, addresses.id AS addresses_id, addresses.city AS addresses_city FROM addresses WHERE addresses.user_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER);
-- $ 1, 2, 3
-- joinedload()
SELECT users.id, users.email, addresses_1.id AS id_1, addresses_1.user_id, addresses_1.city FROM users LEFT OUTER JOIN addresses AS addresses_1 ON users.id = addresses_1.user_id WHERE users.id = $1::INTEGER;
-- $ 1
-- joinedload() of many users
SELECT users.id, users.email, addresses_1.id AS id_1, addresses_1.city FROM users LEFT OUTER JOIN addresses AS addresses_1 ON users.id = addresses_1.user_id WHERE users.balance >= $1::INTEGER ORDER BY users.id;
-- $ 0
-- joinedload(innerjoin=True)
SELECT entries.id, entries.amount, accounts_1.id AS id_1, accounts_1.amount AS amount_1 FROM entries JOIN accounts AS accounts_1 ON accounts_1.id = entries.account_id WHERE entries.booked >= $1::DATE;
-- $ '2024-02-02'
-- joinedload() of two levels
SELECT users.id, users.email, accounts_1.id AS id_1, accounts_1.amount, entries_1.id AS id_2, entries_1.amount AS amount_1 FROM users LEFT OUTER JOIN accounts AS accounts_1 ON users.id = accounts_1.owner_id LEFT OUTER JOIN entries AS entries_1 ON accounts_1.id = entries_1.account_id WHERE users.id = $1::INTEGER;
-- $ 1
-- joinedload() with LIMIT
SELECT anon_1.id, anon_1.email, addresses_1.id AS id_1, addresses_1.city FROM (SELECT users.id AS id, users.email AS email FROM users ORDER BY users.id LIMIT $1::INTEGER) AS anon_1 LEFT OUTER JOIN addresses AS addresses_1 ON anon_1.id = addresses_1.user_id ORDER BY anon_1.id;
-- $ 2
-- join() with a condition
SELECT users.id, users.email FROM users JOIN addresses ON users.id = addresses.user_id WHERE addresses.city = $1::VARCHAR;
-- $ 'Rome'
-- join() of one row
SELECT users.id, users.email, memberships.role FROM users JOIN memberships ON users.id = memberships.user_id WHERE users.id = $1::INTEGER;
-- $ 2
-- any()
SELECT users.id, users.email FROM users WHERE EXISTS (SELECT 1 FROM addresses WHERE users.id = addresses.user_id AND addresses.city = $1::VARCHAR);
-- $ 'Oslo'
-- a scalar subquery
SELECT users.id, (SELECT count(addresses.id) AS count_1 FROM addresses WHERE addresses.user_id = users.id) AS anon_1 FROM users WHERE users.id = $1::INTEGER;
-- $ 1
-- with_for_update()
SELECT users.id, users.balance FROM users WHERE users.id = $1::INTEGER FOR UPDATE;
-- $ 1
-- with_for_update(key_share=True)
SELECT users.id, users.balance FROM users WHERE users.email = $1::VARCHAR FOR NO KEY UPDATE;
-- $ 'ann@example.com'
-- with_for_update(read=True)
SELECT accounts.id, accounts.amount FROM accounts WHERE accounts.id = $1::UUID FOR SHARE;
-- $ 'aaaaaaaa-0000-4000-8000-000000000002'
-- with_for_update(skip_locked=True)
SELECT jobs.id, jobs.queue, jobs.status FROM jobs WHERE jobs.status = $1::jobstatus ORDER BY jobs.id LIMIT $2::INTEGER FOR UPDATE SKIP LOCKED;
-- $ 'queued', 1
-- add()
INSERT INTO users (email, name, balance, version_id, created_at) VALUES ($1::VARCHAR, $2::VARCHAR, $3::INTEGER, $4::INTEGER, $5::TIMESTAMP WITHOUT TIME ZONE) RETURNING users.id;
-- $ 'dan@example.com', 'Dan', 0, 1, '2024-05-01 00:00:00'
-- add_all()
INSERT INTO addresses (user_id, city, main) SELECT p0::INTEGER, p1::VARCHAR, p2::BOOLEAN FROM (VALUES ($1::INTEGER, $2::VARCHAR, $3::BOOLEAN, 0), ($4::INTEGER, $5::VARCHAR, $6::BOOLEAN, 1)) AS imp_sen(p0, p1, p2, sen_counter) ORDER BY sen_counter RETURNING addresses.id, addresses.id AS id__1;
-- $ 1, 'Bern', false, 2, 'Bern', false
-- a row of a key of two columns
INSERT INTO memberships (user_id, team_id, role) VALUES ($1::INTEGER, $2::INTEGER, $3::VARCHAR);
-- $ 3, 1, 'member'
-- on_conflict_do_nothing()
INSERT INTO memberships (user_id, team_id, role) VALUES ($1::INTEGER, $2::INTEGER, $3::VARCHAR) ON CONFLICT (user_id, team_id) DO NOTHING;
-- $ 1, 1, 'member'
-- on_conflict_do_update()
INSERT INTO users (email, name, balance, version_id, created_at) VALUES ($1::VARCHAR, $2::VARCHAR, $3::INTEGER, $4::INTEGER, $5::TIMESTAMP WITHOUT TIME ZONE) ON CONFLICT (email) DO UPDATE SET name = excluded.name RETURNING users.id;
-- $ 'bob@example.com', 'Rob', 0, 1, '2024-05-01 00:00:00'
-- flush of a change
UPDATE users SET balance=$1::INTEGER WHERE users.id = $2::INTEGER;
-- $ 90, 1
-- flush with version_id_col
UPDATE users SET balance=$1::INTEGER, version_id=$2::INTEGER WHERE users.id = $3::INTEGER AND users.version_id = $4::INTEGER;
-- $ 90, 2, 1, 1
-- update() of a counter
UPDATE users SET balance=(users.balance - $1::INTEGER) WHERE users.id = $2::INTEGER AND users.balance >= $3::INTEGER RETURNING users.balance;
-- $ 30, 1, 30
-- update() of an amount
UPDATE accounts SET amount=(accounts.amount + $1::NUMERIC(12, 2)) WHERE accounts.id = $2::UUID AND accounts.amount >= $3::NUMERIC(12, 2);
-- $ 5, 'aaaaaaaa-0000-4000-8000-000000000001', 7.5
-- claim of a job
UPDATE jobs SET status=$1::jobstatus, attempts=(jobs.attempts + $2::INTEGER) WHERE jobs.id = (SELECT jobs.id FROM jobs WHERE jobs.status = $3::jobstatus ORDER BY jobs.run_at LIMIT $4::INTEGER FOR UPDATE SKIP LOCKED) RETURNING jobs.id, jobs.queue;
-- $ 'running', 1, 'queued', 1
-- delete()
DELETE FROM addresses WHERE addresses.id = $1::INTEGER;
-- $ 2
-- delete() of several
DELETE FROM memberships WHERE memberships.user_id = $1::INTEGER;
-- $ 2
-- union_all()
SELECT addresses.city AS name FROM addresses WHERE addresses.user_id = $1::INTEGER UNION ALL SELECT memberships.role AS name FROM memberships WHERE memberships.user_id = $2::INTEGER;
-- $ 1, 1
-- a common table expression
WITH rich AS (SELECT users.id AS id, users.balance AS balance FROM users WHERE users.balance > $1::INTEGER) SELECT rich.id, rich.balance FROM rich ORDER BY rich.id;
-- $ 60
