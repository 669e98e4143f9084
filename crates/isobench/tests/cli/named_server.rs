//! A named server: `compare` works in its own schema there and removes it; `init` and `run` do what
//! pgbench does.

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held, rounds};
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::{embedded, pgbench};

const SHORT: &str =
    "compare -w tpcb-like --levels rc,rr --clients 2 --transactions 10 --warmup 0 --rounds 1 --json out.json";

/// The user's tables, with the same names as isobench's.
const USERS_TABLES: &str = "
    create table pgbench_accounts (aid int, note text);
    insert into pgbench_accounts values (1, 'mine');
    create table pgbench_branches (bid int primary key);
    insert into pgbench_branches select generate_series(1, 5);
    create table pgbench_history as select now() as moment";
const USERS_SUMS: &str =
    "select concat_ws(' ', (select md5(string_agg(t::text, ' ')) from pgbench_accounts t),
    (select md5(string_agg(t::text, ' ')) from pgbench_branches t),
    (select md5(string_agg(t::text || xmin, ' ')) from pgbench_history t))";

#[test]
fn compare_touches_nothing_but_its_schema() {
    let Some(database) = Database::new("compare_touches_nothing_but_its_schema") else { return };
    let scene = Scene::new();
    database.connect().execute(USERS_TABLES).expect("tables");
    let (inventory, sums) = (database.inventory(), database.value(USERS_SUMS));
    let finished = database.run(&scene, &words(SHORT)).expect(0);
    let said = finished.stderr.find("working in schema \"isobench\" on ").expect("it says so");
    assert!(said < finished.stderr.find("[1/2]").expect("progress"), "before it starts: {}", finished.stderr);
    assert!(!finished.stderr.contains("embedded"), "{}", finished.stderr);
    assert_eq!(database.inventory(), inventory);
    assert_eq!(database.value(USERS_SUMS), sums);
    let document = document::read(&scene, "out.json");
    assert_invariants_held(&document);
    assert_eq!(document["server"]["embedded"], false);
}

#[test]
fn cells_that_take_turns_are_observed_in_schemas_of_their_own() {
    let Some(database) = Database::new("cells_that_take_turns_are_observed_in_schemas_of_their_own") else {
        return;
    };
    let scene = Scene::new();
    database
        .connect()
        .execute("create schema isobench_1; create table isobench_1.mine (v int)")
        .expect("a schema");
    let before = database.inventory();
    let options = "compare -w tpcb-like --levels rc,rr --clients 2 --time 0.5 --slice 0.1 --warmup 0 --rounds 1 \
        --details --json out.json";
    let finished = database.run(&scene, &words(options)).expect(0);
    finished
        .says(&["cells take turns", "but for names that are taken"])
        .prints(&["Added columns to 4 of 7 statements"]);
    assert_eq!(database.inventory(), before);
    let document = document::read(&scene, "out.json");
    assert_invariants_held(&document);
    assert_eq!(document["observations"].as_array().map(Vec::len), Some(1), "the cells' statements are alike");
    for round in rounds(&document) {
        assert_eq!(document::count(round, "/turns/count"), 5);
        assert_eq!(round["verdict"]["kept"], true, "{:#}", round["verdict"]);
    }
}

#[test]
fn the_schema_can_be_kept_and_is_replaced() {
    let Some(database) = Database::new("the_schema_can_be_kept_and_is_replaced") else { return };
    let scene = Scene::new();
    let keep = format!("{SHORT} --keep --foreign-keys --fillfactor 80");
    database.run(&scene, &words(&keep)).expect(0);
    let kept = database.inventory();
    assert!(kept.contains("isobench.pgbench_accounts") && kept.contains("schema isobench"), "{kept}");
    let options = "select array_to_string(reloptions, ' ') from pg_class where relname = 'pgbench_accounts'";
    assert_eq!(database.value(options), "fillfactor=80");
    let keys = "select count(*)::text from pg_constraint where contype = 'f'";
    assert_eq!(database.value(keys), "5");
    // A schema with isobench's mark is a leftover, and is replaced.
    let finished = database.run(&scene, &words(SHORT)).expect(0);
    finished.says(&["in place of one that an earlier run left behind"]);
    assert_eq!(database.inventory(), "");
}

#[test]
fn a_schema_of_that_name_is_refused() {
    let Some(database) = Database::new("a_schema_of_that_name_is_refused") else { return };
    let scene = Scene::new();
    let schema = "create schema isobench; create table isobench.precious as select 1 as one";
    database.connect().execute(schema).expect("a schema");
    let before = database.inventory();
    let finished = database.run(&scene, &words(SHORT)).expect(1);
    finished.says(&["schema \"isobench\" exists already and was not made by isobench", "(-d)"]);
    assert_eq!(database.inventory(), before);
    assert_eq!(database.value("select one::text from isobench.precious"), "1");
}

#[test]
fn one_comparison_at_a_time() {
    let Some(database) = Database::new("one_comparison_at_a_time") else { return };
    let scene = Scene::new();
    let long = "compare -w tpcb-like --levels rc --clients 2 --time 600 --warmup 0 --rounds 1";
    let running = Running::start(&mut database.isobench(&scene, &words(long)));
    embedded::wait_for_rows(&mut database.connect(), "isobench.pgbench_history");
    let finished = database.run(&scene, &words(SHORT)).expect(1);
    finished.says(&["another run of isobench uses schema \"isobench\""]);
    running.signal(rustix::process::Signal::INT);
    running.finish().expect(2);
    assert_eq!(database.inventory(), "");
}

#[test]
fn options_of_the_embedded_server_are_refused() {
    let Some(database) = Database::new("options_of_the_embedded_server_are_refused") else { return };
    let scene = Scene::new();
    for option in ["--server-bin=/usr", "--server-version=18", "--server-setting=fsync=off"] {
        for command in ["compare", "run"] {
            let finished = database.run(&scene, &[command, option]).expect(1);
            finished.says(&["--server-bin", "a server is named"]);
        }
    }
    assert_eq!(database.inventory(), "");
}

#[test]
fn init_and_run_work_in_the_users_own_schema() {
    let Some(database) = Database::new("init_and_run_work_in_the_users_own_schema") else { return };
    let scene = Scene::new();
    let finished = database.run(&scene, &words("init -s 2 -q")).expect(0);
    finished.says(&[
        "dropping old tables...",
        "creating tables...",
        "vacuuming...",
        "creating primary keys...",
        "done in ",
    ]);
    assert!(database.inventory().contains("public.pgbench_accounts"), "{}", database.inventory());
    assert_eq!(database.value("select count(*)::text from pgbench_accounts"), "200000");
    let finished = database.run(&scene, &words("run -c 2 -t 10 --random-seed 1 --json out.json")).expect(0);
    let finished = finished.says(&["starting vacuum...end."]);
    let finished = finished.prints(&["scaling factor: 2\n", "actually processed: 20/20\n"]);
    assert!(
        !finished.stdout.contains("invariant"),
        "run does what pgbench does, and no more: {}",
        finished.stdout
    );
    assert_eq!(database.value("select count(*)::text from pgbench_history"), "20");
    // With a level, the invariants are checked against the existing history.
    let options = "run -n -c 2 -t 10 --isolation ser --max-tries 1000 --json out.json";
    database
        .run(&scene, &words(options))
        .expect(0)
        .prints(&["invariant history rows = committed: held (20 new"]);
    assert_eq!(database.value("select count(*)::text from pgbench_history"), "40");
    assert_eq!(rounds(&document::read(&scene, "out.json")).count(), 1);
    assert!(!database.inventory().contains("schema"), "{}", database.inventory());
    // As in pgbench, the scale comes from the tables.
    let finished = database.run(&scene, &words("run -t 1 -s 7")).expect(0);
    finished.says(&["scale option ignored", "(2)"]).prints(&["scaling factor: 2\n"]);
}

#[test]
fn pgbench_can_use_what_init_made() {
    let test = "pgbench_can_use_what_init_made";
    let (Some(pgbench), Some(database)) = (pgbench::find(test), Database::new(test)) else { return };
    let scene = Scene::new();
    database.run(&scene, &["init"]).expect(0);
    let mut command = scene.program(&pgbench.program, &["-t", "5"]);
    let finished = Running::start(command.args(database.server_options()).arg(&database.name)).finish();
    finished.expect(0).prints(&["actually processed: 5/5"]);
}

/// Status 3: the measurement is complete, but the server didn't keep its promise.
#[test]
fn a_server_that_loses_updates_is_caught() {
    let Some(database) = Database::new("a_server_that_loses_updates_is_caught") else { return };
    let scene = Scene::new();
    database.run(&scene, &words("init -q")).expect(0);
    let lose = "create function lose() returns trigger language plpgsql as
            'begin if new.aid % 2 = 0 then new.abalance := old.abalance; end if; return new; end';
        create trigger lose before update on pgbench_accounts for each row execute function lose()";
    database.connect().execute(lose).expect("a trigger");
    let options = "run -c 2 -t 20 --isolation rc --random-seed 1 --json out.json";
    let finished = database.run(&scene, &words(options)).expect(3);
    let finished = finished.says(&["an invariant does not hold"]);
    finished.prints(&["invariant sum(accounts) = sum(history): VIOLATED", "history rows = committed: held"]);
    let document: serde_json::Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    assert_eq!(document["complete"], true);
    assert_eq!(document.pointer("/cells/0/summary/invariants_held"), Some(&false.into()));
}

/// A connection string, a URI and the environment name the same server.
#[test]
fn every_way_to_name_a_server() {
    let Some(database) = Database::new("every_way_to_name_a_server") else { return };
    let scene = Scene::new();
    scene.write("good.sql", "insert into seen values (current_setting('application_name'));\n");
    database.connect().execute("create table seen (application text)").expect("a table");
    let options = database.server_options();
    let (host, port, user, name) = (&options[1], &options[3], &options[5], &database.name);
    let run = ["run", "-t", "1", "-f", "good.sql"];
    let keywords = format!("host={host} port={port} user={user} dbname={name} application_name=keywords");
    let uri = format!("postgresql:///{name}?host={host}&port={port}&user={user}&application_name=uri");
    for text in [keywords, uri] {
        scene.run(&[&run[..], &[&text]].concat()).expect(0);
        scene.run(&[&run[..], &["-d", &text]].concat()).expect(0);
    }
    let mut command = scene.isobench(&run);
    command.envs([("PGHOST", host), ("PGPORT", port), ("PGUSER", user), ("PGDATABASE", name)]);
    Running::start(command.env("PGAPPNAME", "environment")).finish().expect(0);
    let seen = database.value("select string_agg(application, ' ' order by application) from seen");
    assert_eq!(seen, "environment keywords keywords uri uri");
}
