//! What is written is read again, by the same library. That other programs read it, too, is a test of
//! the command line (`crates/isobench/tests/cli/parquet.rs`).

#[expect(dead_code, reason = "tests of layouts use all examples at once")]
#[path = "../../isobench-result/tests/result/examples/mod.rs"]
mod examples;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use examples::example;
use isobench_isolation::History;
use isobench_isolation::history::binary;
use isobench_isolation::history::{
    Draft, Key, Operation, Transaction, TransactionOutcome as Outcome, Version,
};
use isobench_parquet::{ExportError, TransactionsFile, write_rounds, write_series};
use isobench_result::{Document, ExaminedHistory, RecordedHistory, Verdict, bins, rounds};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};

/// Rows of a row group.
const GROUP: u64 = 1 << 17;

/// A table that the report makes, as its tests expect it.
fn saved(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isobench-report/tests/golden");
    fs::read_to_string(folder.join(name)).expect("an example")
}

/// The rows of a file, and the number of row groups.
fn read(file: Vec<u8>) -> (Vec<Row>, usize) {
    let reader = SerializedFileReader::new(Bytes::from(file)).expect("a file");
    let rows = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row"));
    (rows.collect(), reader.num_row_groups())
}

/// A value as CSV writes it.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Double(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Bool(flag) => flag.to_string(),
        other => panic!("{other:?} is of no type that is written"),
    }
}

/// No value of the examples has a comma or a quotation mark.
#[test]
fn rounds_are_those_of_csv() {
    for name in ["three-levels", "broken-promise", "interrupted"] {
        let document = example(name);
        let mut file = Vec::new();
        let count = write_rounds(&document, &mut file).expect("a file");
        let (rows, _) = read(file);
        assert_eq!(rows.len() as u64, count);
        let csv = saved(&format!("{name}.csv"));
        let mut lines = csv.lines();
        let titles: Vec<&str> = lines.next().expect("titles").split(',').collect();
        for (row, line) in rows.iter().zip(lines.by_ref()) {
            let values: Vec<(&String, String)> =
                row.get_column_iter().skip(2).map(|(name, value)| (name, text(value))).collect();
            assert_eq!(values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), titles);
            let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
            assert_eq!(values, line.split(',').collect::<Vec<_>>(), "{name}");
        }
        assert!(lines.next().is_none() && !rows.is_empty(), "{name}: a row for each line");
    }
}

#[test]
fn the_series_adds_up_to_the_rounds() {
    let mut found = 0;
    for name in ["three-levels", "faults", "observed"] {
        let document = example(name);
        let mut file = Vec::new();
        assert_eq!(write_series(&document, &mut file).expect("a file"), bins(&document).count() as u64);
        let (rows, _) = read(file);
        for place in rounds(&document).filter(|place| place.round.series.is_some()) {
            let is_here = |row: &&Row| {
                u64::try_from(value(row, "cell")) == Ok(place.number as u64)
                    && value(row, "round") == i64::from(place.round.round)
            };
            let sum: i64 = rows.iter().filter(is_here).map(|row| value(row, "committed")).sum();
            assert_eq!(sum, place.round.transactions.committed.cast_signed(), "{name}");
            found += 1;
        }
    }
    assert!(found > 0, "no example has a series");
}

fn column<'r>(row: &'r Row, name: &str) -> &'r Field {
    row.get_column_iter().find(|(title, _)| *title == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn value(row: &Row, name: &str) -> i64 {
    match column(row, name) {
        Field::Long(value) => *value,
        other => panic!("{name} is {other:?}"),
    }
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
fn transactions_are_written_by_row_groups() {
    let count = 2 * GROUP + 7;
    let document = recorded(count);
    let place = rounds(&document).next().expect("a round");
    let mut file = Vec::new();
    let mut table = TransactionsFile::new(&mut file).expect("a file");
    table.add(&place, recording(count).as_slice()).expect("the round's recording");
    assert_eq!(table.finish().expect("a whole file"), count);
    let (rows, groups) = read(file);
    assert_eq!((rows.len() as u64, groups), (count, 3));
    let from = 100_000;
    for (number, row) in (0..).zip(&rows).step_by(1009) {
        assert_eq!(value(row, "number"), number);
        assert_eq!((value(row, "client"), value(row, "reads"), value(row, "writes")), (number % 4, 1, 2));
        assert_eq!((value(row, "begin_us"), value(row, "end_us")), (number - from, number - from + 3));
        assert_eq!(value(row, "duration_us"), 3);
        assert_eq!(column(row, "warmup"), &Field::Bool(number < from));
        assert_eq!(column(row, "outcome"), &Field::Str("committed".to_owned()));
        assert_eq!(column(row, "level"), &Field::Str(place.cell.level.name()));
    }
    let last = rows.last().expect("rows");
    assert_eq!((column(last, "end_us"), column(last, "duration_us")), (&Field::Null, &Field::Null));
    assert_eq!(column(last, "outcome"), &Field::Str("unknown".to_owned()));
}

#[test]
fn other_recordings_are_refused() {
    let document = recorded(10);
    let place = rounds(&document).next().expect("a round");
    let add = |recording: &[u8]| {
        let mut file = Vec::new();
        let mut table = TransactionsFile::new(&mut file).expect("a file");
        table.add(&place, recording)
    };
    add(&recording(10)).expect("the round's recording");
    let error = add(&recording(9)).expect_err("of another run");
    assert!(matches!(error, ExportError::Foreign { found: 9, examined: 10 }), "{error}");
    let whole = recording(10);
    for part in [&whole[..whole.len() - 3], b"T1: r x = 1\n", b""] {
        let error = add(part).expect_err("no whole recording");
        assert!(matches!(error, ExportError::Unreadable(_)), "{error}");
    }
}
