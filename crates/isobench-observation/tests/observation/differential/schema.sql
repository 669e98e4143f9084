CREATE SEQUENCE numbers;
CREATE SEQUENCE steps;
CREATE TABLE log (step bigint DEFAULT nextval('steps'), name text, event text, row text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (name, event, row)
        VALUES (TG_TABLE_NAME, TG_WHEN || ' ' || TG_OP, CASE WHEN TG_OP = 'DELETE' THEN OLD::text ELSE NEW::text END);
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.b = 3 THEN RETURN NULL; END IF;
    NEW.b := NEW.b + 1;
    RETURN NEW;
END $$;
CREATE FUNCTION next(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN nextval(''numbers'') + $1; END';
CREATE TABLE t (a int PRIMARY KEY, b int, c int NOT NULL, d text);
CREATE INDEX t_b ON t (b);
CREATE INDEX t_c_d ON t (c, d);
CREATE TABLE u (a int PRIMARY KEY, b int, c int NOT NULL, d text);
CREATE INDEX u_b ON u (b) INCLUDE (c);
CREATE TABLE j (a int PRIMARY KEY, b int, c int NOT NULL, d text);
CREATE TABLE v (a int, b int NOT NULL, c int NOT NULL, d text, PRIMARY KEY (b, c));
CREATE TABLE p (a int, b int, c int NOT NULL, d text, PRIMARY KEY (a, c)) PARTITION BY LIST (c);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1, 2, 3);
CREATE TABLE p2 PARTITION OF p DEFAULT;
CREATE TABLE n (a int, b int, c int, d text);
CREATE TABLE k (a int PRIMARY KEY, b int, c int, d text);
CREATE TABLE x (a int PRIMARY KEY, b int, c int, d text);
CREATE RULE x_delete AS ON DELETE TO x DO ALSO DELETE FROM k WHERE k.a = OLD.a;
CREATE TABLE h (a int PRIMARY KEY, b int, c int, d text);
CREATE TABLE h1 (PRIMARY KEY (a)) INHERITS (h);
CREATE TABLE f (a int PRIMARY KEY REFERENCES t ON DELETE CASCADE, b int, c int, d text);
CREATE FUNCTION peek(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT b FROM t WHERE a = $1';
CREATE VIEW w AS SELECT a, b, c, d FROM t WHERE c < 5;
CREATE TRIGGER t_before BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER t_after AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER u_before BEFORE INSERT OR UPDATE OR DELETE ON u FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER v_before BEFORE INSERT OR UPDATE OR DELETE ON v FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER p_before BEFORE INSERT OR UPDATE OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER k_skip BEFORE INSERT OR UPDATE ON k FOR EACH ROW EXECUTE FUNCTION skip();
INSERT INTO t SELECT g, nullif(g % 7, 0), g % 10, 'd' || g % 3 FROM generate_series(1, 120) AS g;
INSERT INTO u SELECT g, nullif(g % 5, 0), g % 10, 'd' || g % 4 FROM generate_series(1, 40) AS g;
INSERT INTO j SELECT g, nullif(g % 5, 0), g % 10, 'd' || g % 4 FROM generate_series(1, 40) AS g;
INSERT INTO v SELECT g % 4, g, g % 3, 'd' || g % 2 FROM generate_series(1, 20) AS g;
INSERT INTO p SELECT g, g % 3, g % 6, 'd' || g % 2 FROM generate_series(1, 30) AS g;
INSERT INTO n SELECT g % 5, g, g % 2, 'd' FROM generate_series(1, 12) AS g;
INSERT INTO k SELECT g, g % 5, g % 3, 'd' || g % 2 FROM generate_series(1, 15) AS g;
INSERT INTO x SELECT g, g % 5, g % 3, 'd' || g % 2 FROM generate_series(1, 10) AS g;
INSERT INTO h SELECT g, g % 5, g % 3, 'd' || g % 2 FROM generate_series(1, 8) AS g;
INSERT INTO h1 SELECT g, g % 5, g % 3, 'd' || g % 2 FROM generate_series(6, 12) AS g;
INSERT INTO f SELECT g, g % 5, g % 3, 'd' || g % 2 FROM generate_series(1, 10) AS g;
TRUNCATE log;
