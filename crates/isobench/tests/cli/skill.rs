//! `SKILL.md`, for coding agents: its commands run as they stand, on its own example, and its JSON has the
//! members that it names.

use std::fs;
use std::path::Path;
use std::process::Command;

use isobench_testkit::capture::{SHOP, shop};
use serde_json::Value;

use crate::gates::findings;
use crate::support::named::Database;
use crate::support::scene::Scene;
use crate::support::skip;

const SETUP: &str = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);\n\
    INSERT INTO account SELECT g, 100 FROM generate_series(1, 3) g;\n";

/// The statements of an order, as one process with one connection.
const ORDER: &str = "psql -qAt -v ON_ERROR_STOP=1 <<SQL\nBEGIN;\nSELECT balance AS b FROM account WHERE id = $1 \\gset\n\
    UPDATE account SET balance = :b - 10 WHERE id = $1;\nCOMMIT;\nSQL\n";

fn skill() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../SKILL.md");
    fs::read_to_string(path).expect("SKILL.md")
}

/// The lines of its blocks in a language.
fn block(text: &str, language: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(mark) => inside = !inside && mark == language,
            None if inside => lines.push(line.to_owned()),
            None => {}
        }
    }
    lines
}

/// Fails unless an object has these members, whatever they are.
fn assert_members(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value.get(name).is_some(), "there is no {name} in {value:#}");
    }
}

#[test]
fn its_commands_give_the_answers_that_it_explains() {
    let test = "its_commands_give_the_answers_that_it_explains";
    let (Some(s), Some(database)) = (Scene::with_server(test), Database::new(test)) else { return };
    if Command::new("psql").arg("--version").output().is_err() {
        return skip(test, "psql isn't installed");
    }
    let text = skill();
    assert!(text.lines().count() <= 60, "agents read all of it");
    s.write("setup.sql", SETUP);
    s.write("pay.sql", &(block(&text, "sql").join("\n") + "\n"));
    s.write("report.sql", "SELECT sum(balance) FROM account;\n");
    s.write("shop.sql", SHOP);
    fs::write(s.file("shop.capture"), shop(40)).expect("a capture");
    database.connect().execute(SETUP).expect("tables");
    s.write("order.sh", &format!("#!/bin/sh\n{ORDER}"));
    s.write("cancel.sh", &format!("#!/bin/sh\n{}", ORDER.replace("- 10", "+ 10")));
    for name in ["order.sh", "cancel.sh"] {
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(s.file(name), executable).expect("chmod");
    }
    let [_, folder, _, port, _, user] = database.server_options();
    let source = format!("host={folder} port={port} user={user} dbname={}", database.name);
    let commands = block(&text, "sh");
    // The example races at read committed, which the levels that are written forbid.
    let statuses = [("probe", 3), ("advise", 0), ("advise", 0), ("advise", 0), ("race", 3), ("race", 3)];
    assert_eq!(commands.len(), statuses.len(), "{commands:#?}");
    for (line, (command, status)) in commands.iter().zip(statuses) {
        let words = shlex::split(line).expect("a line of shell");
        let words = words.iter().map(|word| if word == "dbname=shop" { source.as_str() } else { word });
        let words: Vec<&str> = words.collect();
        assert_eq!(words[..2], ["isobench", command], "{line}");
        s.run(&words[1..]).expect(status);
    }
    let read = |file: &str| -> Value { serde_json::from_str(&s.read(file)).expect("JSON") };
    assert_members(&read("probe.json")["levels"][0]["tried"]["found"][0], &["steps", "serial_orders"]);
    let advice = read("advice.json");
    assert_members(&advice, &["at_any_level", "deadlocks", "changes"]);
    let pay = &advice["transactions"][0];
    assert_members(pay, &["status", "level", "below", "higher", "at_every_level", "passed", "unknown"]);
    assert_members(&pay["below"], &["theory", "shown"]);
    let change = &advice["changes"][0];
    assert_members(change, &["diff", "setup", "allocation", "unproved", "refuted", "refused"]);
    assert!(change["diff"].as_str().is_some_and(|diff| diff.starts_with("--- a/pay.sql\n")), "{change:#}");
    assert_eq!(read("race.json")["levels"][0]["findings"][0]["verdict"], "wrong-state");
    assert!(findings(&s, "advise.sarif").is_empty(), "the levels are enough");
}
