//! `isobench race`: commands of an application against each other. Each is a small script of psql's, or a
//! request to a small application.

use std::process::Command;
use std::time::{Duration, Instant};

use isobench_testkit::installed::python_with;
use rustix::process::Signal;
use serde_json::Value;

use crate::gates::findings;
use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::skip;

const TABLES: &str = "CREATE TABLE item (id serial PRIMARY KEY, stock int NOT NULL);
    INSERT INTO item (stock) VALUES (5), (7);
    CREATE TABLE orders (id serial PRIMARY KEY, item int NOT NULL REFERENCES item, at timestamptz NOT NULL);
    CREATE TABLE member (name text PRIMARY KEY);
    CREATE TABLE heartbeat (at timestamptz)";

/// Reads the stock and writes what it read, less one.
const ORDER: &str = "psql -qAt -v ON_ERROR_STOP=1 <<'END'
BEGIN;
SELECT stock FROM item WHERE id = 1 \\gset
UPDATE item SET stock = :stock - 1 WHERE id = 1;
INSERT INTO orders (item, at) VALUES (1, now());
COMMIT;
END
";

/// The same in one statement.
const ATOMIC: &str = "psql -qAt -v ON_ERROR_STOP=1 -c BEGIN \
    -c 'UPDATE item SET stock = stock - 1 WHERE id = 1 AND stock > 0' \
    -c 'INSERT INTO orders (item, at) VALUES (1, now())' -c COMMIT";

/// A registration that looks first.
const REGISTER: &str = "[ \"$(psql -qAt -c \"SELECT count(*) FROM member WHERE name = 'bob'\")\" = 0 ] || \
    { echo taken; exit 0; }; psql -qAt -c \"INSERT INTO member VALUES ('bob')\"";

/// Takes the only place, looks whether there are more takers, and gives it back if so. Each statement is a
/// transaction.
const CLAIM: &str = "psql -qAt -v ON_ERROR_STOP=1 <<'END'
INSERT INTO orders (item, at) VALUES (1, now()) RETURNING id \\gset
SELECT count(*) > 1 AS full FROM orders \\gset
\\if :full
DELETE FROM orders WHERE id = :id;
\\echo full
\\else
\\echo taken
\\endif
END
";

/// A scene and a database with the tables, if there are a server and psql.
fn shop(test: &str) -> Option<(Scene, Database)> {
    if Command::new("psql").arg("--version").output().is_err() {
        skip(test, "psql isn't installed");
        return None;
    }
    let database = Database::new(test)?;
    database.connect().execute(TABLES).expect("tables");
    let scene = Scene::new();
    scene.write("order.sh", ORDER);
    scene.write("atomic.sh", ATOMIC);
    scene.write("register.sh", REGISTER);
    Some((scene, database))
}

/// The program on this database, whose name is typed as consent.
fn program(scene: &Scene, database: &Database, options: &[&str], commands: &[&str]) -> Command {
    let mut program = database.isobench(scene, &["race"]);
    program.args(["--on-this-database", &database.name]).args(options).arg("--").args(commands);
    program
}

fn race(scene: &Scene, database: &Database, options: &[&str], commands: &[&str]) -> Finished {
    Running::start(&mut program(scene, database, options, commands)).finish()
}

/// The contents of all tables.
fn contents(database: &Database) -> String {
    database.value(
        "SELECT concat_ws(' ', (SELECT string_agg(id || '=' || stock, ',' ORDER BY id) FROM item),
            (SELECT count(*) FROM orders), (SELECT count(*) FROM member),
            (SELECT last_value || is_called::text FROM orders_id_seq))",
    )
}

/// Fails unless the tables are as they were at first.
fn assert_restored(database: &Database) {
    assert_eq!(contents(database), "1=5,2=7 0 0 1false");
}

#[test]
fn a_lost_update_is_found_at_the_level_that_permits_it() {
    let Some((scene, database)) = shop("a_lost_update_is_found_at_the_level_that_permits_it") else { return };
    let files = ["--json", "race.json", "--junit", "race.xml", "--sarif", "race.sarif"];
    let raced = race(&scene, &database, &files, &["sh order.sh"]).expect(3);
    let raced = raced.prints(&[
        "2 commands, 4 and 4 statements; ",
        "This command, run twice at once, RACES at read committed.",
        "At serializable no race in 8 schedules, but A or B gets exit 3 (40001) in 8 of them",
        "item.stock (id 1) is 4; after A;B it is 3",
        "Not compared: orders.at, orders.id",
    ]);
    raced.says(&["the commands race at read committed"]);
    assert_restored(&database);
    let found: Value = serde_json::from_str(&scene.read("race.json")).expect("JSON");
    assert_eq!((&found["format"], &found["own_level"]), (&"isobench/race".into(), &"read committed".into()));
    let verdicts: Vec<&Value> =
        found["levels"].as_array().expect("levels").iter().map(|level| &level["verdicts"]).collect();
    assert_eq!(verdicts[0], &serde_json::json!([{"verdict": "wrong-state", "schedules": 3}]));
    assert_eq!(verdicts[2], &serde_json::json!([{"verdict": "error", "schedules": 8}]));
    let switches: Vec<&Value> =
        found["levels"].as_array().expect("levels").iter().map(|level| &level["switches"]).collect();
    let one = serde_json::json!({"switches": 1, "planned": 3, "tried": 3});
    assert_eq!(switches[0], &serde_json::json!([one]), "a race with one switch is enough");
    let two = serde_json::json!({"switches": 2, "planned": 5, "tried": 5});
    assert_eq!(switches[2], &serde_json::json!([one, two]));
    let xml = scene.read("race.xml");
    assert!(xml.contains("tests=\"3\" failures=\"1\"") && xml.contains("type=\"wrong-state\""), "{xml}");
    let found = findings(&scene, "race.sarif");
    let named =
        serde_json::json!([{"logicalLocations": [{"fullyQualifiedName": "sh order.sh | sh order.sh"}]}]);
    assert_eq!((found.len(), &found[0]["level"], &found[0]["locations"]), (1, &"error".into(), &named));
    // A finding comes again by its schedule, and ends at the next level. Passwords are in no file.
    let once = ["--schedule", "A1,B", "--levels", "rc", "--junit", "race.xml", "--sarif", "race.sarif"];
    let again = race(&scene, &database, &once, &["PGPASSWORD='hun&<\"ter' sh order.sh"]).expect(3);
    for file in ["race.xml", "race.sarif"] {
        let text = scene.read(file);
        assert!(text.contains("*** sh order.sh") && !text.contains("hun"), "{text}");
    }
    again.prints(&["; 1 schedule in "]);
    race(&scene, &database, &["--schedule", "A1,B", "--levels", "rr"], &["sh order.sh"]).expect(0);
    assert_restored(&database);
}

#[test]
fn an_update_in_one_statement_is_clean() {
    let Some((scene, database)) = shop("an_update_in_one_statement_is_clean") else { return };
    let raced = race(&scene, &database, &["--levels", "rc"], &["sh atomic.sh", "--and", "sh", "atomic.sh"]);
    let raced = raced.expect(0).prints(&["At read committed no race in 2 schedules.", "serial 2"]);
    assert!(!raced.stdout.to_lowercase().contains("safe"), "{}", raced.stdout);
    assert_restored(&database);
}

#[test]
fn a_race_that_only_two_switches_show_is_found() {
    let Some((scene, database)) = shop("a_race_that_only_two_switches_show_is_found") else { return };
    scene.write("claim.sh", CLAIM);
    let options = ["--levels", "rc", "--json", "race.json"];
    let raced = race(&scene, &database, &options, &["sh claim.sh"]).expect(3);
    raced.prints(&[
        "RACES at read committed",
        "schedule A1,B2,A,B (first in ",
        "orders: 0 new or changed rows; after A;B: 1",
        "A answers exit 0 full",
        "B answers exit 0 full",
    ]);
    let found: Value = serde_json::from_str(&scene.read("race.json")).expect("JSON");
    let switches = &found["levels"][0]["switches"];
    assert_eq!(switches[0], serde_json::json!({"switches": 1, "planned": 1, "tried": 1}));
    assert_eq!(switches[1], serde_json::json!({"switches": 2, "planned": 2, "tried": 2}));
    let replay = |schedule: &str| {
        race(&scene, &database, &["--levels", "rc", "--schedule", schedule], &["sh claim.sh"])
    };
    replay("A1,B2,A,B").expect(3).prints(&["RACES at read committed", "; 1 schedule in "]);
    // A gives the place back before B looks.
    replay("A1,B1,A2,B").expect(0).prints(&["serial 1"]);
    let locked = CLAIM
        .replace("INSERT INTO", "BEGIN;\nSELECT pg_advisory_xact_lock(7) \\g /dev/null\nINSERT INTO")
        .replace("\\endif\n", "\\endif\nCOMMIT;\n");
    scene.write("locked.sh", &locked);
    race(&scene, &database, &options[..2], &["sh locked.sh"]).expect(0).prints(&["no race in "]);
    assert_restored(&database);
}

#[test]
fn commands_that_only_read_are_clean() {
    let Some((scene, database)) = shop("commands_that_only_read_are_clean") else { return };
    let read = "date +%s; psql -At -c BEGIN -c 'SELECT sum(stock) FROM item' -c 'SELECT now(), count(*) FROM orders' -c COMMIT";
    let other = "psql -At -c 'SELECT stock FROM item' -c 'SELECT random() FROM item'";
    race(&scene, &database, &["--levels", "rc"], &[read, "--and", other])
        .expect(0)
        .prints(&["no race in 7 schedules."]);
}

#[test]
fn a_unique_key_turns_a_race_into_an_error_for_the_user() {
    let Some((scene, database)) = shop("a_unique_key_turns_a_race_into_an_error_for_the_user") else {
        return;
    };
    let raced = race(&scene, &database, &["--levels", "rc"], &["sh register.sh"]).expect(0);
    raced.prints(&[
        "no race in 2 schedules, but A or B gets exit 1 (23505) in 2 of them",
        "! 23505 duplicate key",
    ]);
    database.connect().execute("ALTER TABLE member DROP CONSTRAINT member_pkey").expect("altered");
    let raced = race(&scene, &database, &["--levels", "rc"], &["sh register.sh"]).expect(3);
    raced.prints(&["RACES at read committed", "member: 2 new or changed rows; after A;B: 1"]);
    assert_restored(&database);
}

#[test]
fn locks_in_another_order_are_an_error_for_the_user() {
    let Some((scene, database)) = shop("locks_in_another_order_are_an_error_for_the_user") else { return };
    let transfer = |from: u8, to: u8| {
        format!(
            "psql -q -v ON_ERROR_STOP=1 -c BEGIN -c 'UPDATE item SET stock = stock - 1 WHERE id = {from}' \
             -c 'UPDATE item SET stock = stock + 1 WHERE id = {to}' -c COMMIT"
        )
    };
    let (one, other) = (transfer(1, 2), transfer(2, 1));
    let raced = race(&scene, &database, &["--levels", "rc"], &[&one, "--and", &other]).expect(0);
    raced.prints(&["no race in 6 schedules, but", "(40P01) in 4 of them", "(waited for a lock)", "serial 2"]);
    assert_restored(&database);
}

/// Tables of every kind, with values that COPY escapes.
const KINDS: &str = "CREATE TABLE \"Odd name\" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \"a\"\"b\" text, raw bytea,
        list int[], doubled int GENERATED ALWAYS AS (cardinality(list) * 2) STORED);
    INSERT INTO \"Odd name\" (\"a\"\"b\", raw, list) VALUES (E'tab\\t line\\n back\\\\slash', '\\x00ff', '{1,2}'), (NULL, '', NULL), ('\\N', NULL, '{}');
    CREATE TABLE part (id int, day date NOT NULL) PARTITION BY RANGE (day);
    CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
    INSERT INTO part VALUES (1, '2026-05-05'), (2, '2026-06-06');
    CREATE TABLE parent (id int); CREATE TABLE child (extra json) INHERITS (parent);
    INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, '{\"a\": 1}');
    CREATE TABLE many (id int PRIMARY KEY, word text);
    INSERT INTO many SELECT n, 'word ' || n FROM generate_series(1, 6000) AS n;
    CREATE TABLE log (id serial, what text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log (what) VALUES (TG_OP); RETURN NULL; END';
    CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON many FOR EACH ROW EXECUTE FUNCTION note()";

#[test]
fn rows_of_every_kind_of_table_are_put_back() {
    let Some((scene, database)) = shop("rows_of_every_kind_of_table_are_put_back") else { return };
    database.connect().execute(KINDS).expect("tables");
    let all = "SELECT concat_ws(E'\\n', (SELECT string_agg(t::text, ';' ORDER BY ctid) FROM \"Odd name\" t),
        (SELECT string_agg(t::text, ';' ORDER BY ctid) FROM part t), (SELECT string_agg(t::text, ';') FROM ONLY parent t),
        (SELECT string_agg(t::text, ';') FROM child t), (SELECT md5(string_agg(t::text, ';' ORDER BY id)) FROM many t),
        (SELECT count(*) FROM log), (SELECT string_agg(sequencename || coalesce(last_value, -1), ';' ORDER BY 1) FROM pg_sequences))";
    // Where rows lie may change; their order may not.
    let before = database.value(all);
    scene.write(
        "change.sql",
        "BEGIN; UPDATE \"Odd name\" SET \"a\"\"b\" = 'x', list = '{3}'; DELETE FROM part WHERE id = 2;
        UPDATE parent SET id = 9; DELETE FROM many WHERE id % 1000 = 0; UPDATE many SET word = 'new' WHERE id = 7;
        INSERT INTO many VALUES (7000, 'more'); INSERT INTO item (stock) VALUES (1);
        COMMIT; UPDATE item SET stock = stock + 1 WHERE id = 1;",
    );
    let command = "psql -q -v ON_ERROR_STOP=1 -f change.sql";
    let other = "psql -q -c 'UPDATE item SET stock = stock + 1 WHERE id = 2'";
    let raced = race(&scene, &database, &["--levels", "rc", "--budget", "5s"], &[command, "--and", other]);
    raced.expect(0).prints(&["no race in "]);
    assert_eq!(database.value(all), before);
    assert_restored(&database);
}

#[test]
fn materialized_views_are_refreshed_and_ids_of_partitions_say_nothing() {
    let test = "materialized_views_are_refreshed_and_ids_of_partitions_say_nothing";
    let Some((scene, database)) = shop(test) else { return };
    let tables = "CREATE TABLE entry (id bigint GENERATED BY DEFAULT AS IDENTITY, place int NOT NULL, of int)
            PARTITION BY LIST (place);
        CREATE TABLE entry_one PARTITION OF entry FOR VALUES IN (1);
        CREATE MATERIALIZED VIEW total AS SELECT sum(stock) AS stock FROM item;
        CREATE MATERIALIZED VIEW twice AS SELECT stock * 2 AS stock FROM total;
        CREATE SEQUENCE drawn INCREMENT 50; CREATE TABLE ticket (id bigint PRIMARY KEY, note text)";
    database.connect().execute(tables).expect("tables");
    // Its ids follow a sequence that the table doesn't name, and another column follows them.
    scene.write(
        "sell.sql",
        "BEGIN; UPDATE item SET stock = stock - 1 WHERE id = 1;
        INSERT INTO entry (place, of) SELECT 1, id FROM nextval('drawn') AS id;
        INSERT INTO ticket VALUES (nextval('drawn') * 7, 'sold'); COMMIT;
        REFRESH MATERIALIZED VIEW total; REFRESH MATERIALIZED VIEW twice;",
    );
    let sell = ["psql -q -v ON_ERROR_STOP=1 -f sell.sql"];
    let options = ["--levels", "rc", "--budget", "5s"];
    let raced = race(&scene, &database, &options, &sell).expect(0);
    raced.prints(&["no race in ", "Not compared: entry_one.id, entry_one.of, ticket.id"]);
    let views = || database.value("SELECT concat_ws(' ', total.stock, twice.stock) FROM total, twice");
    assert_eq!(views(), "12 24");
    assert_restored(&database);
    // One that isn't up to date can't be put back by a refresh.
    database.connect().execute("UPDATE item SET stock = 8 WHERE id = 2").expect("an update");
    let stale = race(&scene, &database, &options, &sell).expect(1);
    stale.says(&["public.total", "a refresh of this materialized view doesn't give its first contents"]);
}

#[test]
fn a_command_that_refrains_since_another_one_runs_is_declined() {
    let test = "a_command_that_refrains_since_another_one_runs_is_declined";
    let Some((scene, database)) = shop(test) else { return };
    scene.write(
        "single.sh",
        "psql -qAt -v ON_ERROR_STOP=1 <<'END'
SELECT pg_try_advisory_lock(7) AS first \\gset
\\if :first
SELECT stock FROM item WHERE id = 1 \\gset
UPDATE item SET stock = :stock - 1 WHERE id = 1;
\\echo sold
\\else
\\echo another one runs
\\endif
END
",
    );
    let raced = race(&scene, &database, &["--levels", "rc"], &["sh single.sh"]).expect(0);
    raced.prints(&["no race in ", "ok read committed   declined"]);
    assert_restored(&database);
}

#[test]
fn pairs_of_a_file_are_checked_one_after_another() {
    let Some((scene, database)) = shop("pairs_of_a_file_are_checked_one_after_another") else { return };
    let check = |pairs: &str| {
        scene.write("races.toml", &format!("pairs = [\n{pairs}]\n"));
        let mut program = database.isobench(&scene, &["race", "--check", "races.toml", "--levels", "rc"]);
        program.args(["--on-this-database", &database.name, "--json", "all.json", "--junit", "all.xml"]);
        Running::start(&mut program).finish()
    };
    let clean = "[\"sh atomic.sh\"],\n[\"sh atomic.sh\", \"psql -c 'SELECT stock FROM item'\"],\n";
    check(clean).expect(0).prints(&[
        "No race in 2 schedules at read committed: sh atomic.sh (twice)\n",
        " at read committed: sh atomic.sh | psql -c 'SELECT stock FROM item'\n",
    ]);
    let finished = check(&format!("[\"echo hello\"],\n{clean}[\"sh order.sh\"],\n")).expect(3);
    let finished = finished.prints(&["No race in 2 schedules", "RACES at read committed."]);
    finished.says(&[
        "echo hello | echo hello: the commands sent no statement",
        "sh order.sh | sh order.sh: the commands race at read committed",
        "2 of 4 pairs race or weren't tried",
    ]);
    let found: Value = serde_json::from_str(&scene.read("all.json")).expect("JSON");
    assert_eq!(found["pairs"].as_array().map(Vec::len), Some(4), "{found:#}");
    assert_eq!(found["pairs"][3]["levels"][0]["verdicts"][0]["verdict"], "wrong-state", "{found:#}");
    let xml = scene.read("all.xml");
    assert!(xml.contains("tests=\"4\" failures=\"1\" skipped=\"0\" errors=\"1\""), "{xml}");
    check("[\"echo hello\"],\n").expect(2).says(&["1 of 1 pairs weren't tried"]);
    assert_restored(&database);
}

#[test]
fn three_commands_are_tried_in_one_schedule() {
    let Some((scene, database)) = shop("three_commands_are_tried_in_one_schedule") else { return };
    let options = ["--levels", "rc", "--schedule", "A1,B,C"];
    let commands = ["sh order.sh", "--and", "sh order.sh", "--and", "sh order.sh"];
    race(&scene, &database, &options, &commands).expect(3).prints(&["after A;B;C it is 2"]);
    assert_restored(&database);
}

#[test]
fn a_condition_that_breaks_is_a_race() {
    let Some((scene, database)) = shop("a_condition_that_breaks_is_a_race") else { return };
    let ignored = ["--levels", "rc", "--schedule", "A1,B", "--ignore", "item.stock"];
    race(&scene, &database, &ignored, &["sh order.sh"]).expect(0);
    let condition = "sold: SELECT stock = 5 - (SELECT count(*) FROM orders) FROM item WHERE id = 1";
    let options = [&ignored[..], &["--invariant", condition]].concat();
    race(&scene, &database, &options, &["sh order.sh"]).expect(3).prints(&["Sold doesn't hold"]);
    let wrong = [&ignored[..4], &["--ignore", "itme"]].concat();
    race(&scene, &database, &wrong, &["sh order.sh"])
        .expect(1)
        .says(&["there is no table or column \"itme\""]);
    assert_restored(&database);
}

#[test]
fn commands_that_cannot_be_tried_have_status_2() {
    let Some((scene, database)) = shop("commands_that_cannot_be_tried_have_status_2") else { return };
    let options = ["--levels", "rc"];
    let untouched = race(&scene, &database, &options, &["echo hello"]).expect(2);
    untouched.says(&["the commands sent no statement through isobench (each exit 0: hello)"]);
    race(&scene, &database, &options, &["sh", "order.sh", "--and", "echo", "hello"])
        .expect(2)
        .says(&[
            "command B sends no statement",
            "no schedule at read committed says whether the commands race",
        ])
        .prints(&["nothing is known: a command sends no statement"]);
    let kept = "[ -e kept ] || sh atomic.sh; touch kept";
    race(&scene, &database, &options, &[kept])
        .expect(2)
        .says(&["command A sent statements when it first ran, and none later", "command B sent"]);
    race(&scene, &database, &options, &["sh atomic.sh; echo no such route; exit 7"])
        .expect(2)
        .prints(&["nothing is known: when it runs alone, A gets exit 7: no such route; B gets exit 7"]);
    let elsewhere = race(&scene, &database, &options, &["psql -d postgres -c 'CREATE TABLE t ()'"]).expect(2);
    elsewhere.says(&["a session for database \"postgres\" was refused"]);
    let random = "psql -qAt -c 'UPDATE item SET stock = (random() * 1000000)::int WHERE id = 1'";
    race(&scene, &database, &options, &[random])
        .expect(2)
        .says(&["item.stock differs between two runs of A;B"]);
    // Last, since the server's process sleeps on.
    let [_, folder, _, port, _, user] = database.server_options();
    let around = format!(
        "psql -h {folder} -p {port} -U {user} -c 'SELECT pg_sleep(5)' & sleep 0.3; psql -c 'UPDATE item SET stock = 1'"
    );
    race(&scene, &database, &options, &[&around]).expect(2).says(&["connected to the database directly"]);
    assert_restored(&database);
}

#[test]
fn an_application_that_demands_encryption_is_let_in() {
    let test = "an_application_that_demands_encryption_is_let_in";
    let Some((scene, database)) = shop(test) else { return };
    let options = ["--levels", "rc", "--schedule", "A1,B"];
    for mode in ["require", "verify-full"] {
        let encrypted = format!("PGSSLMODE={mode} sh order.sh");
        race(&scene, &database, &options, &[&encrypted]).expect(3).prints(&["RACES at read committed"]);
    }
    scene.write("other.crt", include_str!("../../../isobench-pgwire/tests/pgwire/tls/pem/authority.crt"));
    let distrustful = "PGSSLMODE=verify-full PGSSLROOTCERT=other.crt psql -c 'SELECT 1'";
    let refused = race(&scene, &database, &options, &[distrustful]).expect(2);
    refused.says(&["didn't accept the certificate", "sslmode=require", "PGSSLROOTCERT"]);
    assert_restored(&database);
}

#[test]
fn an_application_whose_settings_are_in_a_file_connects_to_a_port_that_was_named() {
    let test = "an_application_whose_settings_are_in_a_file_connects_to_a_port_that_was_named";
    let Some((scene, database)) = shop(test) else { return };
    let port = free_port().to_string();
    let [.., user] = database.server_options();
    let settings = format!("[shop]\nhost=127.0.0.1\nport={port}\ndbname={}\nuser={user}\n", database.name);
    scene.write("settings", &settings);
    let order = "unset PGHOST PGPORT PGDATABASE; PGSERVICEFILE=settings PGSERVICE=shop sh order.sh";
    let options = ["--levels", "rc", "--listen", &port];
    race(&scene, &database, &options, &[order]).expect(3).prints(&["RACES at read committed"]);
    let taken = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).expect("free again");
    race(&scene, &database, &options, &[order])
        .expect(1)
        .says(&["could not listen for connections at 127.0.0.1"]);
    drop(taken);
    race(&scene, &database, &["--listen", "0.0.0.0:0"], &[order]).expect(1).says(&["loopback"]);
    assert_restored(&database);
}

#[test]
fn a_database_is_changed_only_with_consent_and_by_nobody_else() {
    let test = "a_database_is_changed_only_with_consent_and_by_nobody_else";
    let Some((scene, database)) = shop(test) else { return };
    let mut without = database.isobench(&scene, &["race"]);
    without.args(["--", "touch started"]);
    let consent = format!("--on-this-database {}", database.name);
    Running::start(&mut without).finish().expect(1).says(&["--copy-from", &consent]);
    let mut other = database.isobench(&scene, &["race", "--on-this-database", "shop"]);
    other.args(["--", "touch started"]);
    Running::start(&mut other).finish().expect(1).says(&["the connection options lead to database"]);
    scene.run(&["race", "--", "touch started"]).expect(1).says(&["race needs a database"]);
    let mut session = database.connect();
    session.execute("SET application_name = 'nightly'").expect("set");
    let used = race(&scene, &database, &[], &["touch started"]).expect(1);
    used.says(&["is in use by nightly"]);
    session.close();
    database
        .connect()
        .execute(
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER always BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION f();
        ALTER TABLE item ENABLE ALWAYS TRIGGER always",
        )
        .expect("a trigger");
    race(&scene, &database, &[], &["touch started"]).expect(1).says(&["is enabled always"]);
    assert!(!scene.file("started").exists(), "nothing was started");
}

#[test]
fn wrong_words_are_refused_before_anything_runs() {
    let scene = Scene::new();
    scene.write("wrong.toml", "pairs = [[\"a\"], []]\n");
    for (words, expected) in [
        (&["--check", "wrong.toml"][..], "wrong.toml: pair 2 has an empty command"),
        (&["--check", "none.toml"], "could not read \"none.toml\""),
        (&["--check", "wrong.toml", "--", "x"], "cannot be used with"),
        (&["--schedule", "C1", "--", "x"], "there is no command \"C\""),
        (&["--", "x", "--and"], "a command next to --and is empty"),
        (&["--", "a", "--and", "b", "--and", "c", "--and", "d"], "there are 4 commands"),
        (&["--serve", "x", "--", "a"], "--ready"),
        (&["--serve", "x", "--ready", "localhost", "--", "a"], "give a port, such as 8000"),
        (&["--copy-from", "dbname=x", "-d", "y", "--", "a"], "leave out -h, -p, -U and -d"),
        (&["--levels", "high", "--", "a"], "high"),
        (&["-d", "x", "--server-setting", "fsync=off", "--", "a"], "which only --copy-from uses"),
    ] {
        scene.run(&[&["race"], words].concat()).expect(1).says(&[expected]);
    }
}

#[test]
fn an_interrupt_puts_rows_back_and_ends_what_was_started() {
    let test = "an_interrupt_puts_rows_back_and_ends_what_was_started";
    let Some((scene, database)) = shop(test) else { return };
    let slow = "psql -q -c 'UPDATE item SET stock = 0 WHERE id = 1' -c 'SELECT pg_sleep(60)'";
    let running = Running::start(&mut program(&scene, &database, &["--levels", "rc"], &[slow]));
    crate::support::wait_for("the first command", || contents(&database).starts_with("1=0").then_some(()));
    running.signal(Signal::TERM);
    let began = Instant::now();
    let ended = running.finish().expect(2);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    ended.says(&["interrupted"]);
    assert_restored(&database);
    assert_eq!(scene.processes(), Vec::<String>::new());
}

#[test]
fn what_was_found_until_an_interrupt_is_reported() {
    let Some((scene, database)) = shop("what_was_found_until_an_interrupt_is_reported") else { return };
    let files = ["--json", "race.json"];
    let running = Running::start(&mut program(&scene, &database, &files, &["sh order.sh"]));
    running.wait_for_stderr("repeatable read: one command after the other");
    running.signal(Signal::INT);
    running.finish().expect(2).prints(&["RACES at read committed", "Incomplete: interrupted"]);
    assert!(scene.read("race.json").contains("\"problem\": \"interrupted\""));
    assert_restored(&database);
}

#[test]
fn a_copy_is_used_and_the_original_is_left_alone() {
    let Some((scene, database)) = shop("a_copy_is_used_and_the_original_is_left_alone") else { return };
    let [_, folder, _, port, _, user] = database.server_options();
    let source = format!("host={folder} port={port} user={user} dbname={}", database.name);
    let mut session = database.connect();
    let raced = scene.run(&["race", "--copy-from", &source, "--levels", "rc", "--", "sh order.sh"]).expect(3);
    raced.prints(&["a copy of ", "RACES at read committed"]);
    assert_eq!(
        session
            .value("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'item'")
            .expect("a number")
            .as_deref(),
        Some("0")
    );
    assert_restored(&database);
    scene.assert_clean();
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port()
}

/// The application: keep-alive, a pool, a heartbeat, work after the answer.
const APPLICATION: &str = include_str!("race/application.py");

#[test]
fn requests_to_an_application_with_a_pool_race() {
    let test = "requests_to_an_application_with_a_pool_race";
    let python = match python_with("psycopg") {
        Ok(python) => python.to_string_lossy().into_owned(),
        Err(why) => return skip(test, &why),
    };
    if Command::new("curl").arg("--version").output().is_err() {
        return skip(test, "curl isn't installed");
    }
    let Some((scene, database)) = shop(test) else { return };
    scene.write("application.py", APPLICATION);
    let port = free_port();
    let race = |pool: u8, levels: &str, path: &str| {
        // The shell stays, and has to end with the application.
        let serve = format!("POOL={pool} PORT={port} {python} application.py");
        let (ready, url) = (format!("http://127.0.0.1:{port}/"), format!("http://127.0.0.1:{port}{path}"));
        let options = ["--serve", &serve, "--ready", &ready, "--levels", levels];
        race(&scene, &database, &options, &[&format!("curl -X POST {url}")])
    };
    let raced = race(4, "rc,rr", "/order").expect(3);
    raced.prints(&[
        "RACES at read committed",
        "A or B gets HTTP 500 (40001) in 8 of them",
        "after A;B it is 3",
        "heartbeat",
        "Never held, since the application sends them at rest: 1 statement",
    ]);
    race(4, "rc", "/atomic").expect(0).prints(&["At read committed no race in "]);
    race(4, "rc", "/loose").expect(3).prints(&["after A;B it is 3"]);
    race(4, "rc", "/later").expect(3).prints(&["2 commands, 2 and 2 statements", "after A;B it is 3"]);
    race(4, "rc", "/reserved").expect(0).prints(&["At read committed no race in 3 schedules.", "serial 3"]);
    race(1, "rc", "/order").expect(2).prints(&["their statements don't mix and nothing is known"]);
    assert_restored(&database);
    assert_eq!(scene.processes(), Vec::<String>::new());
}

/// An application that copies, sends pipelines, listens and cancels.
const PROTOCOL: &str = include_str!("race/protocol.py");

#[test]
fn everything_that_a_driver_does_passes() {
    let test = "everything_that_a_driver_does_passes";
    let python = match python_with("psycopg") {
        Ok(python) => python.to_string_lossy().into_owned(),
        Err(why) => return skip(test, &why),
    };
    let Some((scene, database)) = shop(test) else { return };
    scene.write("protocol.py", PROTOCOL);
    let options = ["--levels", "rc", "--schedule", "A1,B", "--json", "race.json"];
    race(&scene, &database, &options, &[&format!("{python} protocol.py")]).expect(0).prints(&["serial 1"]);
    let found: Value = serde_json::from_str(&scene.read("race.json")).expect("JSON");
    assert_eq!(found["commands"][0]["statements"], 13, "{found:#}");
    assert_restored(&database);
}
