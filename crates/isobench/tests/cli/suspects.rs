//! `isobench race CAPTURE`: the pairs of recorded transactions that can race.

use std::fs;

use isobench_testkit::capture::{SHOP, Tape, column, done, row, shop};
use isobench_testkit::installed;
use serde_json::Value;

use crate::compare::words;
use crate::gates::findings;
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::skip;

/// Orders at once lose the counter of an offer, which is saved as a whole.
#[test]
fn a_recording_names_what_can_race() {
    let Some(s) = Scene::with_server("a_recording_names_what_can_race") else { return };
    fs::write(s.file("shop.capture"), shop(40)).expect("a capture");
    s.write("shop.sql", SHOP);
    let found = s
        .run(&words("race shop.capture --setup shop.sql --json out.json --junit out.xml --sarif out.sarif"))
        .expect(3);
    let found = found.prints(&[
        "can race at the level they ran at.",
        "update offer after reading it",
        "needs repeatable read",
        "isobench race --copy-from CONNECTION -- REQUEST --and REQUEST",
    ]);
    found.says(&["transactions of the capture can race"]);
    let answer: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(answer["format"], "isobench/suspects");
    assert_eq!(answer["suspects"][0]["kind"], "lost-update", "{answer:#}");
    let results = findings(&s, "out.sarif");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"lost-update".into(), &"warning".into()));
    let xml = s.read("out.xml");
    assert!(xml.contains("name=\"read committed: update offer after reading it\""), "{xml}");
    s.run(&words("race shop.capture --setup shop.sql --details"))
        .expect(3)
        .prints(&["All kinds of transactions"]);
    s.run(&words("race shop.capture")).expect(1).says(&["the tables of the capture are missing"]);
    s.run(&words("race shop.sql --setup shop.sql")).expect(1).says(&["this is no capture"]);
    s.assert_clean();
}

/// Sales of a shop: three by themselves, and two of which the second one has not seen the first one's.
fn sales(at_once: bool) -> Vec<u8> {
    let mut tape = Tape::begin(false);
    (1..=2).for_each(|session| tape.open(session, ""));
    let read = |tape: &mut Tape, session: u64, stock: u32| {
        tape.simple(session, "BEGIN", "BEGIN");
        let columns = [column("id", 9, 1, 23), column("allocated", 9, 2, 23)];
        let answer = tape.rows(&columns, vec![row(&["7", &stock.to_string()])]);
        tape.send(session, "SELECT id, allocated FROM stock WHERE id = 7", Vec::new(), vec![answer], 'T');
    };
    let write = |tape: &mut Tape, session: u64, stock: u32| {
        tape.simple(session, &format!("UPDATE stock SET allocated = {stock} WHERE id = 7"), "UPDATE 1");
        tape.simple(session, "COMMIT", "COMMIT");
    };
    for stock in 1..=3 {
        read(&mut tape, 1, stock);
        write(&mut tape, 1, stock + 1);
        tape.pass(5_000_000);
    }
    if at_once {
        read(&mut tape, 1, 4);
        read(&mut tape, 2, 4);
        write(&mut tape, 1, 5);
        write(&mut tape, 2, 5);
    }
    tape.end()
}

/// A recording in which two sales have raced says so first, with both.
#[test]
fn a_recording_shows_what_has_raced() {
    let Some(s) = Scene::with_server("a_recording_shows_what_has_raced") else { return };
    fs::write(s.file("sales.capture"), sales(true)).expect("a capture");
    s.write("shop.sql", SHOP);
    let gates = "--json out.json --junit out.xml --sarif out.sarif";
    let found = s.run(&words(&format!("race sales.capture --setup shop.sql {gates}"))).expect(3);
    let start =
        "While this was recorded, 1 change was lost.\n  1.  stock id 7: a change of allocated is lost\n";
    assert!(found.stdout.starts_with(start), "{}", found.stdout);
    let found = found.prints(&[
        "read allocated 4 (line ",
        "wrote allocated 5 (line ",
        "it is allocated 5; one after the other it would be allocated 6",
        "update stock after reading it",
    ]);
    found.says(&["transactions of the capture have raced"]);
    let answer: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(answer["live"][0]["kind"], "lost-update", "{answer:#}");
    assert_eq!(answer["live"].as_array().map(Vec::len), Some(1), "{answer:#}");
    let results = findings(&s, "out.sarif");
    let shown = (&results[0]["ruleId"], &results[0]["level"]);
    assert_eq!(shown, (&"recorded-lost-update".into(), &"error".into()), "{results:#?}");
    let xml = s.read("out.xml");
    for text in ["name=\"while recorded: lost update of ", "one after the other it would be allocated 6"] {
        assert!(xml.contains(text), "{text} is missing in\n{xml}");
    }
    fs::write(s.file("calm.capture"), sales(false)).expect("a capture");
    let calm = s.run(&words("race calm.capture --setup shop.sql")).expect(3);
    assert!(calm.stdout.starts_with("1 pair of transactions can race"), "{}", calm.stdout);
    s.assert_clean();
}

/// What was looked at is accepted; a new kind, and one that has changed, is named.
#[test]
fn accepted_suspects_are_silent_and_new_ones_are_named() {
    let Some(s) = Scene::with_server("accepted_suspects_are_silent_and_new_ones_are_named") else { return };
    s.write("shop.sql", SHOP);
    let race = |name: &str, more: &str| s.run(&words(&format!("race {name} --setup shop.sql{more}")));
    fs::write(s.file("calm.capture"), sales(false)).expect("a capture");
    race("calm.capture", " --write accepted.toml").expect(3).says(&["1 pair accepted in accepted.toml"]);
    let file = s.read("accepted.toml");
    assert!(file.starts_with("# Suspects that are accepted") && file.contains("lost-update"), "{file}");
    let calm = race("calm.capture", " --check accepted.toml").expect(0);
    calm.prints(&["No pair of transactions can race", "1 pair more accepted in accepted.toml"]);
    // The same by a statement of another form, and other transactions.
    let text = String::from_utf8(sales(false)).expect("a text");
    let changed = text.replace("SELECT id, allocated FROM stock", "SELECT allocated, id FROM stock");
    s.write("changed.capture", &changed);
    let found = race("changed.capture", " --check accepted.toml").expect(3);
    found.prints(&[
        "1 pair of transactions can race",
        "Not accepted in accepted.toml:\n    update stock (line ",
        "): changed since it was accepted",
    ]);
    fs::write(s.file("shop.capture"), shop(40)).expect("a capture");
    let found = race("shop.capture", " --check accepted.toml --json out.json").expect(3);
    found.prints(&["update offer after reading it", "): new"]);
    // What has raced is no news of a pair that is accepted.
    fs::write(s.file("sales.capture"), sales(true)).expect("a capture");
    let raced = race("sales.capture", " --check accepted.toml").expect(0);
    raced.prints(&["They have raced 1 time while this was recorded"]);
    s.write("other.toml", "pairs = [[\"a\"]]\n");
    let wrong = race("calm.capture", " --check other.toml").expect(1);
    wrong.says(&["--check: other.toml: it isn't a file of accepted suspects"]);
    let kept = race("calm.capture", " --write other.toml").expect(1);
    kept.says(&["\"other.toml\" exists and isn't a file of accepted suspects of isobench"]);
    s.assert_clean();
}

/// Real clients sell at once: sales are reported as lost only if the stock is off, and none of those that lock the
/// row, compare what they read, or set a value of their own.
#[test]
fn nothing_is_reported_where_nothing_was_lost() {
    let test = "nothing_is_reported_where_nothing_was_lost";
    let (Some(s), Some(database)) = (Scene::with_server(test), Database::new(test)) else { return };
    let Ok((pgbench, _)) = installed::pgbench() else { return skip(test, "there is no pgbench") };
    let tables = "CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, stock int NOT NULL); \
        INSERT INTO item VALUES (1, 'thing', 1000), (2, 'thing', 2000)";
    database.connect().execute(tables).expect("tables");
    let sale = |lock: &str, value: &str, guard: &str| {
        format!(
            "\\set id random(1, 2)\n\\set own random(1, 900)\nBEGIN;\n\
             SELECT id, stock FROM item WHERE id = :id{lock} \\gset\n\\set left :stock - 1\n\
             UPDATE item SET name = 'thing', stock = {value} WHERE id = :id{guard};\nCOMMIT;\n"
        )
    };
    let [_, folder, _, port, _, user] = database.server_options();
    let source = format!("host={folder} port={port} user={user} dbname={}", database.name);
    let pgbench = pgbench.to_string_lossy().into_owned();
    let (clients, each) = (4, 40);
    for (script, may_lose) in [
        (sale("", ":left", ""), true),
        (sale(" FOR UPDATE", ":left", ""), false),
        (sale("", ":left", " AND stock = :stock"), false),
        (sale("", ":own", ""), false),
    ] {
        s.write("sale.sql", &script);
        database.connect().execute("UPDATE item SET stock = 1000 * id").expect("a stock");
        let mut recorder = database.isobench(&s, &["record", "-o", "sale.capture"]);
        let times = each.to_string();
        recorder.args(["--", &pgbench, "-n", "-f", "sale.sql", "-c", "4", "-j", "2", "-t", &times]);
        Running::start(&mut recorder).finish().expect(0);
        let left: i64 = database.value("SELECT sum(stock) FROM item").parse().expect("a number");
        let lost = clients * each - (3000 - left);
        let raced = ["race", "sale.capture", "--copy-from", &source, "--json", "out.json"];
        let status = s.run(&raced).status.code();
        assert!([Some(0), Some(3)].contains(&status), "{status:?}");
        let answer: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
        let found = answer["live"].as_array().map_or(0, Vec::len);
        // Where nothing is lost, each sale has read what the one before it wrote.
        let most = if may_lose && lost > 0 { usize::MAX } else { 0 };
        assert!(found <= most, "{found} reported, {lost} lost:\n{script}\n{answer:#}");
        fs::remove_file(s.file("sale.capture")).expect("no capture");
    }
    s.assert_clean();
}

/// The schema is copied, whatever its name is, and nothing of the capture is executed on its server.
#[test]
fn the_schema_is_copied_from_the_recorded_database() {
    let test = "the_schema_is_copied_from_the_recorded_database";
    let (Some(s), Some(database)) = (Scene::with_server(test), Database::new(test)) else { return };
    let tables = "CREATE SCHEMA app; CREATE TYPE app.mood AS ENUM ('ok'); \
        CREATE TABLE app.page (id int PRIMARY KEY, hits int NOT NULL, mood app.mood)";
    database.connect().execute(tables).expect("tables");
    let capture = |statements: &[&str]| {
        let mut tape = Tape::begin(false);
        for number in 0..6 {
            for sql in statements {
                let status = if statements.len() == 1 || *sql == "COMMIT" { 'I' } else { 'T' };
                let sql = sql.replace("{i}", &number.to_string());
                let tag = sql.split(' ').next().unwrap_or_default().to_owned();
                let tag = if tag.len() == 6 && tag != "COMMIT" { format!("{tag} 1") } else { tag };
                tape.send(1, &sql, Vec::new(), vec![done(&tag)], status);
            }
        }
        tape.end()
    };
    let [_, folder, _, port, _, user] = database.server_options();
    let source = format!("host={folder} port={port} user={user} dbname={}", database.name);
    let safe = capture(&["UPDATE app.page SET hits = hits + 1 WHERE id = {i}"]);
    fs::write(s.file("safe.capture"), safe).expect("a capture");
    s.run(&["race", "safe.capture", "--copy-from", &source])
        .expect(0)
        .prints(&["No pair of transactions can race", "1 kind without a schedule at read committed"]);
    let change = "UPDATE app.page SET hits = 1{i} WHERE id = {i}";
    let lost = capture(&["BEGIN", "SELECT hits FROM app.page WHERE id = {i}", change, "COMMIT"]);
    fs::write(s.file("lost.capture"), lost).expect("a capture");
    let found = s.run(&["race", "lost.capture", "--copy-from", &source]).expect(3);
    found.prints(&["1 pair of transactions can race", "update app.page after reading it"]);
    let nothing = capture(&["UPDATE app.nothing SET hits = 1 WHERE id = {i}"]);
    fs::write(s.file("nothing.capture"), nothing).expect("a capture");
    s.run(&["race", "nothing.capture", "--copy-from", &source]).expect(2).prints(&["1 kind not analysed"]);
    assert_eq!(database.value("SELECT count(*) FROM app.page"), "0");
    s.assert_clean();
}
