CREATE TABLE pull_request (id int PRIMARY KEY, claimed_by int);
CREATE TABLE review (id bigserial PRIMARY KEY, pull_request int NOT NULL, agent int NOT NULL);
INSERT INTO pull_request SELECT g, NULL FROM generate_series(1, 4) g;
