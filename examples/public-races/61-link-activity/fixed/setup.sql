CREATE TABLE activity (id int PRIMARY KEY);
CREATE TABLE activity_link (id bigserial PRIMARY KEY, activity int NOT NULL REFERENCES activity, target int NOT NULL);
CREATE INDEX ON activity_link (activity);
CREATE FUNCTION keep_ceiling() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM activity WHERE id = NEW.activity FOR NO KEY UPDATE;
  IF (SELECT count(*) FROM activity_link WHERE activity = NEW.activity) >= 3 THEN
    RAISE EXCEPTION 'too many links' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER keep_ceiling BEFORE INSERT ON activity_link FOR EACH ROW EXECUTE FUNCTION keep_ceiling();
INSERT INTO activity SELECT g FROM generate_series(1, 2) g;
INSERT INTO activity_link (activity, target) SELECT g, g FROM generate_series(1, 2) g;
