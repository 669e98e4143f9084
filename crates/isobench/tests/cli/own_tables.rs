//! The user's own tables and conditions on a server: what is told, what is touched, and what isn't.

use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, rounds};
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::terminal::Terminal;
use crate::support::wait_for;

/// A script that leaves the sum of the balances as it is, and one that doesn't at any level.
const TRANSFER: &str = "BEGIN;\nUPDATE account SET balance = balance - 1 WHERE id = 1;\nUPDATE account SET balance = \
    balance + 1 WHERE id = 2;\nEND;\n";
const GIFT: &str = "UPDATE account SET balance = balance + 1 WHERE id = 1;\n";
const TABLES: &str = "DROP TABLE IF EXISTS account;\nCREATE TABLE account (id int PRIMARY KEY, balance int);\nINSERT \
    INTO account VALUES (1, 50), (2, 50);\n";
const TOTAL: &str = "total: SELECT sum(balance) = 100, sum(balance) FROM account";

const SHORT: &str =
    "compare --levels rc,ser --clients 2 --transactions 5 --warmup 0 --rounds 2 --json out.json";
const KEPT: &str = "-w transfer.sql --schema app --keep-data";

/// The user's tables in schema `app`, one of the same name elsewhere, and a role's other things.
fn shop(test: &str) -> Option<(Database, Scene)> {
    let database = Database::new(test)?;
    let scene = Scene::new();
    let sql = format!(
        "create schema app; set search_path = app; {TABLES} set search_path = public; {TABLES} create sequence numbers"
    );
    database.connect().execute(&sql).expect("tables");
    for (name, text) in [("transfer.sql", TRANSFER), ("gift.sql", GIFT), ("tables.sql", TABLES)] {
        scene.write(name, text);
    }
    scene.write("back.sql", "UPDATE account SET balance = 50;\n\nVACUUM account;\n");
    Some((database, scene))
}

impl Database {
    /// The balances in a schema, and the number of versions that the rows of the other one have had.
    fn balances(&self, schema: &str) -> String {
        self.value(&format!("select string_agg(balance::text, ' ' order by id) from {schema}.account"))
    }

    fn written(&self, schema: &str) -> String {
        self.value(&format!("select string_agg(xmin::text || ctid, ' ' order by id) from {schema}.account"))
    }
}

fn with<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    words(line).into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn tables_of_the_users_are_used_and_nothing_else() {
    let Some((database, scene)) = shop("tables_of_the_users_are_used_and_nothing_else") else { return };
    let (inventory, elsewhere) = (database.inventory(), database.written("public"));
    let line = format!("{SHORT} {KEPT} --yes");
    let finished = database.run(&scene, &with(&line, &["--invariant", TOTAL])).expect(0);
    for part in [
        "warning: this changes data of yours\n",
        &format!("/{} as ", database.name),
        "  schema  app\n",
        "  writes  transfer.sql:2: UPDATE account SET balance = balance - 1 WHERE id = 1\n",
        "          transfer.sql:3: UPDATE account",
        "  reset   none: each measurement starts with what the one before it left\n",
        "in 4 measurements or more, and commit what they do",
    ] {
        let said = finished.stderr.find(part).unwrap_or_else(|| panic!("{part}: {}", finished.stderr));
        assert!(said < finished.stderr.find("[1/4]").expect("progress"), "before it starts");
    }
    finished.says(&["warning: each measurement starts with the data that the one before it left"]);
    // 2 levels, 2 rounds, 2 clients, 5 transactions.
    assert_eq!(database.balances("app"), "10 90");
    assert_eq!((database.inventory(), database.written("public")), (inventory, elsewhere));
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        assert_eq!((&round["starting_state"], &round["complete"]), (&"kept".into(), &true.into()));
        let [total] = round["invariants"].as_array().expect("a list").as_slice() else { panic!("{round}") };
        assert_eq!((&total["held"], &total["detail"]), (&true.into(), &"found 100".into()));
    }
    assert_eq!(document["plan"]["schema"], "app");
}

#[test]
fn rows_are_put_back_before_each_measurement() {
    let Some((database, scene)) = shop("rows_are_put_back_before_each_measurement") else { return };
    // What the user's own SQL puts back, it puts back in the user's schema.
    let elsewhere = database.written("public");
    let line = format!("{SHORT} {KEPT} --reset back.sql --yes");
    let finished = database.run(&scene, &words(&line)).expect(0);
    finished.says(&["reset   back.sql (2 statements), before each measurement, not after the last one\n"]);
    assert_eq!((database.balances("app"), database.written("public")), ("40 60".to_owned(), elsewhere));
    let document = document::read(&scene, "out.json");
    assert!(rounds(&document).all(|round| round["starting_state"] == "reset"));
    scene.write("back.sql", "UPDATE account SET balance = 50;\n\nUPDATE nothing SET x = 1;\n");
    let finished = database.run(&scene, &words(&line)).expect(1);
    finished.says(&["--reset: back.sql:3: ERROR:  relation \"nothing\" does not exist"]);
}

#[test]
fn nothing_is_touched_without_consent() {
    let Some((database, scene)) = shop("nothing_is_touched_without_consent") else { return };
    let before = (database.inventory(), database.written("app"), database.written("public"));
    let line = format!("{SHORT} {KEPT}");
    for (line, parts) in [
        (line.clone(), &["warning: this changes data of yours", "no terminal to ask on; add --yes"][..]),
        (line.replace("app", "apps") + " --yes", &["--schema: there is no schema \"apps\" in this database"]),
        (line.replace("app", "App") + " --yes", &["there is no schema \"App\""]),
        (line.replace("--keep-data", "--yes"), &["add --keep-data"]),
        (line.replace("transfer.sql", "registers") + " --yes", &["workload registers writes tables"]),
        (line.replace("transfer.sql", "tpcb-like") + " --yes", &["workload tpcb-like writes tables"]),
        (format!("{line} --yes --setup tables.sql"), &["--setup: makes tables"]),
        (format!("{line} --yes --keep"), &["--keep: leaves schema isobench behind"]),
        (format!("{line} --yes --fillfactor 50"), &["--fillfactor"]),
        (format!("{SHORT} --yes"), &["--yes: agrees to changes"]),
        (format!("{SHORT} -w transfer.sql --reset back.sql"), &["--reset: is about tables of your own"]),
    ] {
        database.run(&scene, &words(&line)).expect(1).says(parts);
        let after = (database.inventory(), database.written("app"), database.written("public"));
        assert_eq!(after, before, "{line}");
    }
    // The embedded server has no tables of the user's, and isn't even started.
    let finished = scene.run(&words(&format!("{line} --yes"))).expect(1);
    let finished = finished.says(&["--schema: names tables of yours, but no server is named"]);
    assert!(!finished.stderr.contains("embedded PostgreSQL"), "{}", finished.stderr);
}

#[test]
fn on_a_terminal_the_schema_has_to_be_typed() {
    let Some((database, scene)) = shop("on_a_terminal_the_schema_has_to_be_typed") else { return };
    let before = database.written("app");
    let line = format!("{SHORT} {KEPT}");
    let asked = |answer: &dyn Fn(&Terminal, &Running)| {
        let terminal = Terminal::new(40, 150);
        let mut program = database.isobench(&scene, &words(&line));
        let running = Running::start_at(&mut program, &terminal);
        drop(program);
        wait_for("the question", || terminal.text().contains("Type the schema's name").then_some(()));
        assert_eq!(database.written("app"), before, "nothing is done before the answer");
        answer(&terminal, &running);
        (running.finish(), terminal.at_the_end())
    };
    let (finished, said) = asked(&|terminal, _| terminal.enter("public"));
    finished.expect(1);
    assert!(said.contains("nothing was touched: the answer wasn't the schema's name"), "{said}");
    let (finished, said) = asked(&|_, running| running.signal(Signal::INT));
    finished.expect(2);
    assert!(said.contains("interrupted before anything was touched"), "{said}");
    assert_eq!(database.written("app"), before);
    let (finished, _) = asked(&|terminal, _| terminal.enter("app"));
    finished.expect(0);
    assert_eq!(database.balances("app"), "10 90");
}

/// The conditions of a row's rounds: what was found, and whether it was promised.
fn conditions(cell: &Value) -> Vec<(&Value, &Value)> {
    let rounds = cell["rounds"].as_array().expect("rounds");
    let all = rounds.iter().flat_map(|round| round["invariants"].as_array().expect("a list"));
    all.map(|one| (&one["held"], &one["detail"])).collect()
}

#[test]
fn a_broken_condition_is_counted_and_is_no_broken_promise() {
    let Some(scene) = Scene::with_database("a_broken_condition_is_counted_and_is_no_broken_promise") else {
        return;
    };
    scene.write("gift.sql", GIFT);
    scene.write("tables.sql", TABLES);
    let line = format!("{SHORT} -w gift.sql --setup tables.sql");
    let finished = scene.run(&with(&line, &["--invariant", TOTAL])).expect(3);
    let finished = finished.says(&["an invariant does not hold"]);
    let finished = finished.prints(&["VIOLATED: 2 rounds", "wrong: 2 rounds"]);
    let text = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "No level is recommended: a condition of yours didn't hold at serializable: a transaction breaks it by itself",
        "A condition of yours was VIOLATED after 2 of 2 rounds (total: found 110): a transaction breaks it by itself",
    ] {
        assert!(text.contains(sentence), "{text}");
    }
    for accusation in ["PROMISE BROKEN", "FORBIDDEN ANOMALY", "BROKE a promise", "WRONG"] {
        assert!(!finished.stdout.contains(accusation), "{}", finished.stdout);
    }
    let document = document::read(&scene, "out.json");
    for (index, promised) in [false, true].into_iter().enumerate() {
        let cell = &document["cells"][index];
        let found = Value::from("found 110");
        assert_eq!(conditions(cell), [(&false.into(), &found), (&false.into(), &found)]);
        assert_eq!(cell["rounds"][0]["invariants"][0].get("promised").is_none(), promised, "{cell}");
        assert_eq!(
            (&cell["summary"]["violations"], &cell["summary"]["violations_unit"]),
            (&2.into(), &"rounds".into())
        );
    }
    // At levels that don't promise it, it is no failure.
    let weak = line.replace("rc,ser", "rc,rr");
    scene.run(&with(&weak, &["--invariant", TOTAL])).expect(0);
}

#[test]
fn what_was_violated_before_accuses_no_measurement() {
    let Some((database, scene)) = shop("what_was_violated_before_accuses_no_measurement") else { return };
    let line = format!("{SHORT} -w gift.sql --schema app --keep-data --yes").replace("rc,ser", "rc");
    let finished = database.run(&scene, &with(&line, &["--invariant", TOTAL])).expect(0);
    finished.prints(&["wrong: 1 round"]);
    let document = document::read(&scene, "out.json");
    let before = Value::from("was violated before this measurement already");
    let found = Value::from("found 110");
    assert_eq!(conditions(&document["cells"][0]), [(&false.into(), &found), (&Value::Null, &before)]);
}

#[test]
fn conditions_that_say_nothing_are_refused_before_measuring() {
    let Some((database, scene)) = shop("conditions_that_say_nothing_are_refused_before_measuring") else {
        return;
    };
    let line = format!("{SHORT} {KEPT} --yes");
    let before = database.written("app");
    for (condition, part) in [
        (
            "total: SELECT sum(balance) = 99, sum(balance) FROM account",
            "doesn't hold before anything is measured (found 100)",
        ),
        ("SELECT NULL::boolean", "returned NULL"),
        ("SELECT balance = 50 FROM account", "returned 2 rows"),
        ("SELECT true FROM account WHERE id = 3", "returned no rows"),
        ("SELECT count(*) FROM account", "\"2\", which is neither true nor false"),
        ("SELECT true; DELETE FROM account", "2 statements"),
        ("UPDATE account SET balance = 0 RETURNING true", "cannot execute UPDATE in a read-only transaction"),
        ("SELECT nextval('public.numbers') > 0", "cannot execute nextval() in a read-only transaction"),
        ("SELECT amount > 0 FROM account", "column \"amount\" does not exist"),
    ] {
        let finished = database.run(&scene, &with(&line, &["--invariant", condition])).expect(1);
        finished.says(&["--invariant", part]);
        assert_eq!(database.written("app"), before, "{condition}");
    }
}

#[test]
fn run_asks_before_and_after() {
    let Some((database, scene)) = shop("run_asks_before_and_after") else { return };
    let line = "run -n -c 2 -t 5 --isolation ser --max-tries 1000 --json out.json -f";
    let finished = database.run(&scene, &with(line, &["transfer.sql", "--invariant", TOTAL])).expect(0);
    finished.prints(&["invariant total: held (found 100)\n"]);
    let finished = database.run(&scene, &with(line, &["gift.sql", "--invariant", TOTAL])).expect(3);
    finished.says(&["an invariant does not hold"]).prints(&["invariant total: VIOLATED (found 110)\n"]);
    assert_eq!(document::read(&scene, "out.json")["plan"]["invariant"][0], TOTAL);
    let finished = database.run(&scene, &with(line, &["transfer.sql", "--invariant", TOTAL])).expect(1);
    finished.says(&["--invariant \"total\": doesn't hold before anything is measured (found 110)"]);
    assert_eq!(database.balances("public"), "50 60");
}

/// What `pg_dump` writes, without and with the schema.
const PLAIN: &str = "CREATE TABLE account (id int PRIMARY KEY, balance int);\nCREATE FUNCTION one() RETURNS int \
    LANGUAGE sql AS 'SELECT 1';\nINSERT INTO account VALUES (1, 50), (2, 50);\n";
const DUMPED: &str = "\\restrict a1B2\n\nSELECT pg_catalog.set_config('search_path', '', false);\nCREATE SCHEMA app;\n\
    CREATE TABLE app.note (t text);\nCREATE TABLE public.account (id integer NOT NULL, balance integer);\nINSERT \
    INTO public.account VALUES (1, 50);\nINSERT INTO public.account VALUES (2, 50);\nALTER TABLE ONLY \
    public.account ADD CONSTRAINT account_pkey PRIMARY KEY (id);\n\n\\unrestrict a1B2\n\n";

#[test]
fn tables_are_made_without_dropping_them_first() {
    let Some(scene) = Scene::with_server("tables_are_made_without_dropping_them_first") else { return };
    scene.write("transfer.sql", TRANSFER);
    let condition = ["--invariant", TOTAL];
    for (setup, more) in [(PLAIN, ""), (PLAIN, "--time 0.6 --slice 0.2"), (DUMPED, "")] {
        scene.write("tables.sql", setup);
        let line = format!("{SHORT} -w transfer.sql --setup tables.sql {more}");
        let line = if more.is_empty() { line } else { line.replace("--transactions 5", "") };
        scene.run(&with(&line, &condition)).expect(0);
        let document = document::read(&scene, "out.json");
        assert_eq!(rounds(&document).filter(|round| round["complete"] == true).count(), 4, "{setup}");
    }
}

#[test]
fn what_a_setup_cant_make_twice_is_said_before_measuring() {
    let Some((database, scene)) = shop("what_a_setup_cant_make_twice_is_said_before_measuring") else {
        return;
    };
    let before = database.inventory();
    let line = format!("{SHORT} -w transfer.sql --setup tables.sql");
    scene.write("tables.sql", PLAIN);
    database.run(&scene, &words(&line)).expect(0);
    assert_eq!((database.inventory(), database.balances("app")), (before, "50 50".to_owned()));
    let elsewhere = "CREATE TABLE app.ledger (v int);\n";
    for (last, parts) in [
        ("CREATE SCHEMA app;\n", &["tables.sql:4: ERROR:  schema \"app\" already exists"][..]),
        (
            elsewhere,
            &["tables.sql:4: ERROR:  relation \"ledger\" already exists; the file is run before each cell"],
        ),
        ("CREATE OR REPLACE VIEW app.v AS SELECT * FROM isobench.account;\n", &["depends"]),
    ] {
        scene.write("tables.sql", &format!("{PLAIN}{last}"));
        let finished = database.run(&scene, &words(&line)).expect(1);
        let finished = finished.says(parts);
        assert!(!finished.stderr.contains("[1/4]"), "nothing is measured: {}", finished.stderr);
        database
            .connect()
            .execute("drop table if exists app.ledger; drop view if exists app.v")
            .expect("done");
    }
}

/// A lock of the session that an error leaves behind: each client ends with one that another needs. The
/// first transactions of two clients have met before one of them writes.
const LOCKING: &str = "BEGIN;\nSELECT meet();\nSELECT pg_advisory_lock(1);\nUPDATE account SET balance = balance + 1 \
    WHERE id = 1;\nSELECT pg_advisory_unlock(1);\nCOMMIT;\n";

/// Makes the function whose first caller waits for the second one, both with their snapshots.
const MEETING: &str = "DROP SEQUENCE IF EXISTS met;\nCREATE SEQUENCE met;\nCREATE OR REPLACE FUNCTION meet() RETURNS void \
    LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 FROM account; IF nextval('met') = 1 THEN WHILE (SELECT last_value FROM met) < 2 \
    LOOP PERFORM pg_sleep(0.001); END LOOP; END IF; END $$;\n";

#[test]
fn a_cell_doesnt_wait_for_locks_that_sessions_of_another_keep() {
    let test = "a_cell_doesnt_wait_for_locks_that_sessions_of_another_keep";
    let Some(scene) = Scene::with_database(test) else { return };
    scene.write("use.sql", LOCKING);
    scene.write("tables.sql", &format!("{TABLES}{MEETING}"));
    let line = "compare -w use.sql --setup tables.sql --levels rc,rr --clients 2 --time 2 --warmup 0 --rounds 2 \
                --try 0s --observe annotations --json out.json";
    let finished = scene.run(&words(line)).expect(2);
    finished.says(&[
        "measured one after the other, each in one piece: because of use.sql:3 sessions would keep advisory locks",
        "sessions wait for advisory locks that others hold since their error at use.sql:4 (40001)",
    ]);
    let document = document::read(&scene, "out.json");
    let [committed, repeatable] = document["cells"].as_array().expect("cells").as_slice() else {
        panic!("{document}")
    };
    let rounds = committed["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 2, "it is measured to its end");
    for round in rounds {
        assert_eq!(round["complete"], true);
        assert!(round["transactions"]["committed"].as_u64() > Some(0), "{round}");
        assert!(round["turns"].is_null(), "{round}");
    }
    assert_eq!(repeatable["rounds"].as_array().expect("rounds").len(), 1, "once is enough");
}

#[test]
fn prepared_transactions_dont_outlast_their_cell() {
    let Some(scene) = Scene::with_server("prepared_transactions_dont_outlast_their_cell") else { return };
    // Each would keep the next cell's DROP TABLE waiting.
    let script = "\\set id random(1, 1000000000)\nBEGIN;\nINSERT INTO account VALUES (100 + :id, 1);\nPREPARE \
                  TRANSACTION ':id';\n";
    scene.write("use.sql", script);
    scene.write("tables.sql", TABLES);
    let line = format!("{SHORT} -w use.sql --setup tables.sql --server-setting max_prepared_transactions=50");
    scene.run(&words(&line)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(rounds(&document).filter(|round| round["complete"] == true).count(), 4);
}
