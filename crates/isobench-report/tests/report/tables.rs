//! The tables for other programs, read again line by line. A test of the command line runs the guide's recipes on
//! them (`crates/isobench/tests/cli/tables.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use isobench_isolation::History;
use isobench_isolation::history::binary;
use isobench_isolation::history::{
    Draft, Key, Operation, Transaction, TransactionOutcome as Outcome, Version,
};
use isobench_report::{ExportError, TransactionsTable, write_rounds, write_series};
use isobench_result::{Document, ExaminedHistory, RecordedHistory, Verdict, bins, rounds};

use crate::examples::example;

/// The rows of a table, by the titles. No value of the examples has a comma or a quotation mark.
fn read(table: Vec<u8>) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(table).expect("text");
    let mut lines = text.lines();
    let titles: Vec<&str> = lines.next().expect("titles").split(',').collect();
    lines
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            assert_eq!(values.len(), titles.len(), "{line}");
            titles.iter().zip(values).map(|(title, value)| ((*title).to_owned(), value.to_owned())).collect()
        })
        .collect()
}

#[test]
fn rounds_are_the_lines_of_csv_after_two_keys() {
    for name in ["three-levels", "broken-promise", "interrupted"] {
        let document = example(name);
        let mut table = Vec::new();
        let count = write_rounds(&document, &mut table).expect("a table");
        let table = String::from_utf8(table).expect("text");
        let without_keys: String = table
            .lines()
            .map(|line| line.splitn(3, ',').last().expect("columns").to_owned() + "\n")
            .collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let csv = fs::read_to_string(folder.join(format!("{name}.csv"))).expect("a golden file");
        assert_eq!(without_keys, csv, "{name}");
        assert_eq!(count + 1, csv.lines().count() as u64);
    }
}

#[test]
fn the_series_adds_up_to_the_rounds() {
    let mut found = 0;
    for name in ["three-levels", "faults", "observed"] {
        let document = example(name);
        let mut table = Vec::new();
        assert_eq!(write_series(&document, &mut table).expect("a table"), bins(&document).count() as u64);
        let rows = read(table);
        for place in rounds(&document).filter(|place| place.round.series.is_some()) {
            let here = (place.number.to_string(), place.round.round.to_string());
            let of_round = rows.iter().filter(|row| (&row["cell"], &row["round"]) == (&here.0, &here.1));
            let sum: u64 = of_round.map(|row| row["committed"].parse::<u64>().expect("a count")).sum();
            assert_eq!(sum, place.round.transactions.committed, "{name}");
            found += 1;
        }
    }
    assert!(found > 0, "no example has a series");
}

/// A result whose first round was recorded, measured from 0.1 seconds on, and examined with this many
/// transactions.
fn recorded(transactions: u64) -> Document {
    let mut document = example("three-levels");
    let round = &mut document.cells[0].rounds[0];
    round.history = Some(RecordedHistory { file: "a.history".to_owned(), measured_from_s: 0.1 });
    let examined = ExaminedHistory { committed: transactions, ..ExaminedHistory::default() };
    round.verdict = Some(Verdict { examined, ..Verdict::default() });
    document
}

/// A recording whose transaction of number N starts N microseconds after the clock's origin, takes 3
/// microseconds, reads a row and writes two. The last one has no end.
fn recording(count: u64) -> Vec<u8> {
    let mut history = History::new(vec!["rows".to_owned()]);
    for id in 0..count {
        let mut draft = Draft::new();
        let key = Key { table: 0, id: id.cast_signed() };
        draft.push(Operation::Read { key, version: Version::INITIAL });
        draft.push(Operation::Write { key, version: Version::counted(1) });
        draft.push(Operation::Write { key, version: Version::counted(2) });
        let (begin, last) = (id * 1000, id + 1 == count);
        let (end, outcome) =
            if last { (u64::MAX, Outcome::Unknown) } else { (begin + 3999, Outcome::Committed) };
        history.push(Transaction { id, client: (id % 4) as u32, begin, end, outcome, mode: None }, &draft);
    }
    let mut file = Vec::new();
    binary::write(&history, &mut file).expect("a recording");
    file
}

#[test]
fn each_recorded_transaction_is_a_line() {
    let count = 110_007;
    let document = recorded(count);
    let place = rounds(&document).next().expect("a round");
    let mut written = Vec::new();
    let mut table = TransactionsTable::new(&mut written).expect("a table");
    table.add(&place, recording(count).as_slice()).expect("the round's recording");
    assert_eq!(table.finish().expect("a whole table"), count);
    let rows = read(written);
    assert_eq!(rows.len() as u64, count);
    let from = 100_000;
    for (number, row) in (0_i64..).zip(&rows).step_by(1009) {
        for (column, value) in [
            ("number", number),
            ("client", number % 4),
            ("reads", 1),
            ("writes", 2),
            ("begin_us", number - from),
            ("end_us", number - from + 3),
            ("duration_us", 3),
        ] {
            assert_eq!(row[column], value.to_string(), "{column}");
        }
        assert_eq!(row["warmup"], (number < from).to_string());
        assert_eq!((row["outcome"].as_str(), &row["level"]), ("committed", &place.cell.level.name()));
    }
    let last = rows.last().expect("rows");
    assert_eq!((last["end_us"].as_str(), last["duration_us"].as_str()), ("", ""));
    assert_eq!(last["outcome"], "unknown");
}

#[test]
fn other_recordings_are_refused() {
    let document = recorded(10);
    let place = rounds(&document).next().expect("a round");
    let add = |recording: &[u8]| TransactionsTable::new(Vec::new()).expect("a table").add(&place, recording);
    add(&recording(10)).expect("the round's recording");
    let error = add(&recording(9)).expect_err("of another run");
    assert!(matches!(error, ExportError::Foreign { found: 9, examined: 10 }), "{error}");
    let whole = recording(10);
    for part in [&whole[..whole.len() - 3], b"T1: r x = 1\n", b""] {
        let error = add(part).expect_err("no whole recording");
        assert!(matches!(error, ExportError::Unreadable(_)), "{error}");
    }
}
