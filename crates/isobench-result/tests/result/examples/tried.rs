//! An example whose scripts were tried against each other: a wrong outcome, a wrong answer, and what
//! wasn't tried or judged.

use isobench_result::{ChangedTable, Document, NotTried, OrderOutcome, Tried, TriedStep, WrongOutcome};

use super::kinds::safe;

fn step(transaction: usize, sql: &str, answer: &[&str]) -> TriedStep {
    TriedStep {
        transaction,
        sql: sql.to_owned(),
        line: None,
        answer: answer.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn order(order: &[usize], changes: &[&str], answers: &[&str]) -> OrderOutcome {
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    OrderOutcome {
        order: order.to_vec(),
        changes: all(changes),
        answers: all(answers),
        ..OrderOutcome::default()
    }
}

fn row(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

/// New rows of a table.
fn seats(added: Vec<Vec<Option<String>>>) -> Vec<ChangedTable> {
    let columns = ["id", "show", "no"].map(str::to_owned).to_vec();
    vec![ChangedTable { table: "seat".to_owned(), columns, removed: Vec::new(), added }]
}

/// A seat that is given away twice.
fn damage() -> WrongOutcome {
    const INSERT: &str = "INSERT INTO seat (show, no) VALUES (1, 1)";
    let look = "SELECT count(*) AS taken FROM seat WHERE show = 1 AND no = 1";
    let none = ["taken", "0", "(1 row)"];
    WrongOutcome {
        damage: true,
        scripts: vec!["reserve.sql".to_owned(), "reserve.sql".to_owned()],
        before: "after cancel.sql".to_owned(),
        no_level_prevents: false,
        broken: vec!["one-each".to_owned()],
        steps: vec![
            step(1, "BEGIN", &["BEGIN"]),
            step(1, look, &none),
            step(2, "BEGIN", &["BEGIN"]),
            step(2, look, &none),
            step(2, INSERT, &["INSERT 0 1"]),
            step(2, "COMMIT", &["COMMIT"]),
            step(1, INSERT, &["INSERT 0 1"]),
            step(1, "COMMIT", &["COMMIT"]),
        ],
        outcome: OrderOutcome {
            tables: seats(vec![row(&["11", "1", "1"]), row(&["12", "1", "1"])]),
            ..order(&[1, 2], &["+ seat (11, 1, 1)", "+ seat (12, 1, 1)"], &[])
        },
        serial_orders: [[1, 2], [2, 1]]
            .map(|numbers| OrderOutcome {
                tables: seats(vec![row(&["11", "1", "1"])]),
                ..order(&numbers, &["+ seat (11, 1, 1)"], &[])
            })
            .to_vec(),
    }
}

/// A report that sees one half of a transfer, beside one that waits.
fn wrong_answer() -> WrongOutcome {
    let (first, second) =
        ("SELECT balance FROM account WHERE id = 1", "SELECT balance FROM account WHERE id = 2 FOR UPDATE");
    let answers = |balance: &'static str| ["balance", balance, "(1 row)"];
    WrongOutcome {
        damage: false,
        scripts: vec!["report.sql".to_owned(), "transfer.sql".to_owned(), "<script>".to_owned()],
        steps: vec![
            step(1, first, &answers("100")),
            step(2, "UPDATE account SET balance = balance - 1 WHERE id = 1", &["UPDATE 1"]),
            step(2, "UPDATE account SET balance = balance + 1 WHERE id = 2", &["UPDATE 1"]),
            step(1, second, &["waits"]),
            step(2, "COMMIT", &["COMMIT"]),
            step(1, second, &answers("101")),
        ],
        outcome: order(&[1, 2, 3], &[], &["T1: (100)", "T1: (101)"]),
        serial_orders: vec![
            order(&[1, 2, 3], &[], &["T1: (100)", "T1: (100)"]),
            order(&[2, 1, 3], &[], &["T1: (99)", "T1: (101)"]),
        ],
        ..WrongOutcome::default()
    }
}

/// Levels of which the weaker ones were shown to be unsafe.
pub fn tried() -> Document {
    let mut document = safe();
    let found = [vec![damage(), wrong_answer()], vec![damage()], Vec::new()];
    for (cell, found) in document.cells.iter_mut().zip(found) {
        let clean = found.is_empty();
        cell.tried = Some(Tried {
            interleavings: 240,
            with_failures: 12,
            inconclusive: 1,
            complete: !clean,
            untried: if clean { vec!["report.sql × reserve.sql".to_owned()] } else { Vec::new() },
            undetermined: 2,
            seconds: 5.02,
            found,
            not_tried: vec![NotTried { script: "load.sql".to_owned(), reason: "line 3: COPY".to_owned() }],
            masked: vec!["seat.id".to_owned()],
            by_design: vec!["SKIP LOCKED in take.sql × take.sql".to_owned()],
        });
    }
    document
}
