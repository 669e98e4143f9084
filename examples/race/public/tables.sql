-- The tables of applications with public races; each race has its own.
CREATE TABLE stock (id int PRIMARY KEY, booked int NOT NULL);
CREATE TABLE booking (id int PRIMARY KEY, stock int NOT NULL REFERENCES stock, quantity int NOT NULL, cancelled boolean NOT NULL);
INSERT INTO stock VALUES (1, 5);
INSERT INTO booking VALUES (7, 1, 2, false);

CREATE TABLE tier (id int PRIMARY KEY, capacity int NOT NULL);
CREATE TABLE purchase (id int PRIMARY KEY, tier int NOT NULL REFERENCES tier, state text NOT NULL);
INSERT INTO tier VALUES (1, 0);
INSERT INTO purchase VALUES (79, 1, 'reserved');

CREATE TABLE document (name text PRIMARY KEY, docstatus int NOT NULL);
INSERT INTO document VALUES ('INV-1', 0);

CREATE TABLE runs (id int PRIMARY KEY);
CREATE TABLE run_user_inputs (id bigserial PRIMARY KEY, run_id int NOT NULL REFERENCES runs, body text NOT NULL);
INSERT INTO runs VALUES (1);
INSERT INTO run_user_inputs (run_id, body) VALUES (1, 'x'), (1, 'x');

CREATE TABLE users (id int PRIMARY KEY);
CREATE TABLE endpoints (id bigserial PRIMARY KEY, user_id int NOT NULL REFERENCES users, url text NOT NULL);
INSERT INTO users VALUES (1);
INSERT INTO endpoints (user_id, url) VALUES (1, 'a');

CREATE TABLE pull_request (id int PRIMARY KEY, claimed_by text);
INSERT INTO pull_request VALUES (1, NULL);

CREATE TABLE venues (id int PRIMARY KEY);
CREATE TABLE bookings (id bigserial PRIMARY KEY, venue int NOT NULL REFERENCES venues, during int4range NOT NULL);
INSERT INTO venues VALUES (3);

CREATE TABLE events (id bigserial PRIMARY KEY, connection_id int NOT NULL, origin_id text NOT NULL, content text NOT NULL);

CREATE TABLE cert (id int PRIMARY KEY, created int NOT NULL);
CREATE TABLE used (cert int PRIMARY KEY);
INSERT INTO cert SELECT n, n FROM generate_series(1, 4) AS n;

CREATE TABLE item (key text PRIMARY KEY, value text NOT NULL);

CREATE TABLE lease (action text PRIMARY KEY, holder text NOT NULL, fence int NOT NULL);

CREATE TABLE link_node (pub int PRIMARY KEY, addr text NOT NULL);
CREATE TABLE channel (id bigserial PRIMARY KEY, pub int NOT NULL, open boolean NOT NULL);
INSERT INTO link_node VALUES (1, 'a');
INSERT INTO channel (pub, open) VALUES (1, true);

-- For requests that are right.
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, version int NOT NULL);
INSERT INTO account VALUES (1, 100, 0), (2, 100, 0);
CREATE TABLE payment (key text PRIMARY KEY, amount int NOT NULL);
CREATE TABLE job (id int PRIMARY KEY, done_by text);
INSERT INTO job SELECT n, NULL FROM generate_series(1, 3) AS n;
CREATE TABLE visits (day date PRIMARY KEY, number int NOT NULL);
CREATE TABLE on_call (doctor text PRIMARY KEY, working boolean NOT NULL);
INSERT INTO on_call VALUES ('alice', true), ('bob', true);
CREATE TABLE number (name text PRIMARY KEY, last int NOT NULL);
INSERT INTO number VALUES ('invoice', 41);
