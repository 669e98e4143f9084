//! Levels of scripts that lock sets of rows or tables, and of those whose random keys never meet.

use std::collections::BTreeSet;

use isobench_pgwire::Connection;
use isobench_program::templates;
use isobench_robustness::{Struck, allocate};
use isobench_sql::Catalog;

use crate::support::{installed, load, parsed, reading};

const TABLES: &str = "\
    CREATE TABLE item (id int PRIMARY KEY, owner int NOT NULL, state text NOT NULL, n int NOT NULL, at int NOT NULL);\
    CREATE TABLE token (id int PRIMARY KEY, family int NOT NULL, used boolean NOT NULL);\
    CREATE TABLE total (id int PRIMARY KEY, n int NOT NULL);";

/// Locks the rows of an owner, sums them up, and changes one.
fn locked_first(lock: &str, change: &str) -> String {
    format!(
        "\\set o random(1, 2)\n\\set i random(1, 9)\nBEGIN;\n{lock};\n\
         SELECT sum(n) AS s FROM item WHERE owner = :o \\gset\n\\if :s > 2\n{change};\n\\endif\nCOMMIT;\n"
    )
}

const LOCK: &str = "SELECT id FROM item WHERE owner = :o ORDER BY id FOR UPDATE";
const CHANGE: &str = "UPDATE item SET n = n - 2 WHERE id = :i";

/// The levels that are proved for scripts.
fn levels_of(tables: &Catalog, connection: &mut Connection, texts: &[&str]) -> String {
    let (scripts, symbols) = parsed(texts);
    let catalog = reading(tables, connection, &scripts);
    let found = templates(&scripts, &symbols, &catalog, &BTreeSet::new());
    let allocated = allocate(&found.programs, &Struck::new());
    let levels = allocated.levels.iter().map(|level| level.short());
    if allocated.unprotected.is_empty() { levels.collect::<Vec<_>>().join(" ") } else { "none".to_owned() }
}

#[test]
fn levels_of_what_is_locked_as_a_whole() {
    let Some((_server, mut connection)) = installed("levels_of_what_is_locked_as_a_whole") else { return };
    connection.execute(TABLES).expect("the tables");
    let tables = load(&mut connection);
    let mut levels = |texts: &[&str]| levels_of(&tables, &mut connection, texts);
    let own = locked_first(LOCK, CHANGE);
    assert_eq!(levels(&[&own]), "rc");
    assert_eq!(
        levels(&[&own, "UPDATE item SET n = n + 1 WHERE id = 3;\n", "DELETE FROM item WHERE id = 4;\n"]),
        "rc rc rc"
    );
    // No lock, one that passes by locked rows, one of the first rows only, and one that is given back.
    let unprotected = [
        "SELECT id FROM item WHERE owner = :o",
        "SELECT id FROM item WHERE owner = :o FOR UPDATE SKIP LOCKED",
        "SELECT id FROM item WHERE owner = :o ORDER BY id LIMIT 1 FOR UPDATE",
        "SELECT id FROM item WHERE owner = :o FOR KEY SHARE",
        "SELECT id FROM item WHERE owner = :o AND n > 0 FOR UPDATE",
        "SELECT id FROM item WHERE owner = :i FOR UPDATE",
        "SAVEPOINT s;\nSELECT id FROM item WHERE owner = :o FOR UPDATE;\nROLLBACK TO SAVEPOINT s",
    ];
    for lock in unprotected {
        assert_eq!(levels(&[&locked_first(lock, CHANGE)]), "ser", "{lock}");
    }
    // Rows that come to the set.
    for other in
        ["INSERT INTO item VALUES (:i, 1, 'a', 2, 3);\n", "UPDATE item SET owner = :o WHERE id = :i;\n"]
    {
        let other = format!("\\set i random(1, 9)\n\\set o random(1, 2)\n{other}");
        assert!(levels(&[&own, &other]).starts_with("ser"), "{other}");
    }
    // Those that leave it, and others that come back.
    let state = |to: &str| {
        locked_first(
            "SELECT id FROM item WHERE state = 'a' FOR NO KEY UPDATE",
            &format!("UPDATE item SET state = '{to}' WHERE id = :i"),
        )
        .replace("WHERE owner = :o \\gset", "WHERE state = 'a' \\gset")
    };
    assert_eq!(levels(&[&state("b")]), "rc");
    assert_eq!(levels(&[&state("b"), "UPDATE item SET state = 'c' WHERE id = 1;\n"]), "rc rc");
    assert!(levels(&[&state("b"), "UPDATE item SET state = 'a' WHERE id = 1;\n"]).starts_with("ser"));
    // They are in the order of before.
    let ordered = "SELECT id FROM item WHERE owner = :o ORDER BY at FOR UPDATE";
    assert_eq!(levels(&[&locked_first(ordered, CHANGE)]), "rc");
    let moves = "UPDATE item SET at = at + 1 WHERE id = 1;\n";
    assert_ne!(levels(&[&locked_first(ordered, CHANGE), moves]), "rc rc");
    // What the statement of the lock looks for elsewhere is older than the lock.
    let within =
        "SELECT id, (SELECT max(i.n) FROM item i WHERE i.owner = :o) FROM item WHERE owner = :o FOR UPDATE";
    assert_ne!(
        levels(&[
            &locked_first(within, CHANGE),
            "BEGIN;\nUPDATE total SET n = 1 WHERE id = 1;\nDELETE FROM item WHERE id = 4;\nCOMMIT;\n"
        ]),
        "rc rc"
    );
    // A table that is locked, by each mode.
    for (mode, expected) in [
        ("IN SHARE ROW EXCLUSIVE MODE", "rc"),
        ("IN EXCLUSIVE MODE NOWAIT", "rc"),
        ("", "rc"),
        ("IN ROW EXCLUSIVE MODE", "ser"),
        ("IN ACCESS SHARE MODE", "ser"),
    ] {
        let script = locked_first(
            &format!("LOCK TABLE total, item {mode}"),
            "INSERT INTO item VALUES (:i, :o, 'a', 2, 3)",
        );
        assert_eq!(levels(&[&script]), expected, "{mode}");
        // Who writes waits, too.
        let writer = "UPDATE item SET n = n + 1 WHERE owner = 1;\n";
        let both = levels(&[&script, writer]);
        assert_eq!(both.starts_with("rc"), expected == "rc", "{mode}: {both}");
    }
    // Another table is a lock among those that take it.
    let other = locked_first("LOCK TABLE total", CHANGE);
    assert_eq!(levels(&[&other]), "rc");
    assert!(levels(&[&other, "UPDATE item SET n = n + 1 WHERE id = 3;\n"]).starts_with("ser"));
    let late = "BEGIN;\nSELECT sum(n) AS s FROM item WHERE owner = 1 \\gset\nLOCK TABLE item;\nUPDATE total SET n = :s WHERE id = 1;\nCOMMIT;\n";
    assert_ne!(levels(&[late, "UPDATE item SET n = n + 1 WHERE id = 1;\n"]), "rc rc");
    // Keys that never meet, and some that do.
    let rotate = |new: &str| {
        format!(
            "\\set t random(1, 6)\n\\set new {new}\n\\set family 0\nBEGIN;\n\
             UPDATE token SET used = true WHERE id = :t AND NOT used RETURNING family \\aset\n\\if :family > 0\n\
             INSERT INTO token VALUES (:new, :family, false);\n\\endif\nCOMMIT;\n"
        )
    };
    assert_eq!(levels(&[&rotate("random(7, 100000)")]), "rc");
    assert_ne!(levels(&[&rotate("random(6, 100000)")]), "rc");
    assert_ne!(levels(&[&rotate("random(7, 100000) - 5")]), "rc");
}

#[test]
fn levels_of_workers_that_pass_over_locked_rows() {
    let Some((_server, mut connection)) = installed("levels_of_workers_that_pass_over_locked_rows") else {
        return;
    };
    connection.execute(TABLES).expect("the tables");
    let tables = load(&mut connection);
    let mut levels = |texts: &[&str]| levels_of(&tables, &mut connection, texts);
    let worker = |before: &str, store: &str| {
        format!(
            "\\set i 0\n\\set n 0\n\\set c 0\nBEGIN;\n{before}\
             SELECT id AS i, n FROM item WHERE state = 'a' ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED \\{store}\n\
             UPDATE item SET state = 'b', n = :n + :c WHERE id = :i;\nCOMMIT;\n"
        )
    };
    let again = "UPDATE item SET state = 'a', n = 0 WHERE id = 3;\n";
    let new = "\\set i random(10, 99)\nINSERT INTO item VALUES (:i, 1, 'a', 2, 3);\n";
    assert_eq!(levels(&[&worker("", "gset")]), "rc");
    assert_eq!(levels(&[&worker("", "gset"), again, new]), "rc rc rc");
    // Without a row it goes on, and it counts those of others.
    assert_ne!(levels(&[&worker("", "aset")]), "rc");
    assert_eq!(
        levels(&[&worker("SELECT count(*) AS c FROM item WHERE state = 'b' \\gset\n", "gset")]),
        "ser"
    );
    // The row is read before it is locked.
    let late = "SELECT n AS c FROM item WHERE id = 3 \\gset\n";
    assert!(levels(&[&worker(late, "gset"), again]).starts_with("rr"));
}
