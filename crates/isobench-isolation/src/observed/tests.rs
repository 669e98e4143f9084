use super::*;
use crate::check::{Blind, Options, check};
use crate::history::{Key, Mode, Operation, Transaction, TransactionOutcome, text};
use crate::level::Level;
use crate::model::{Guarantee, Model};

/// A log under construction: table 0 is `t (id, class)`.
#[derive(Default)]
struct LogWriter {
    encoder: ObservedEncoder,
    attempts: u64,
    closed: bool,
    fresh: bool,
}

const HORIZON: u32 = 100;

fn key(id: i64) -> Key {
    Key { table: 0, id }
}

fn read(id: i64, writer: u32) -> ObservedOperation<'static> {
    ObservedOperation::Read { key: key(id), writer, columns: &[] }
}

fn update(id: i64, writer: u32) -> ObservedOperation<'static> {
    ObservedOperation::Write { key: key(id), writer, replaced: Replaced::Unknown, columns: &[] }
}

fn insert(id: i64, writer: u32, columns: &[i64]) -> ObservedOperation<'_> {
    ObservedOperation::Write { key: key(id), writer, replaced: Replaced::Nothing, columns }
}

/// A search for a class.
fn search<'o>(class: &'o [i64], found: &'o [i64]) -> ObservedOperation<'o> {
    ObservedOperation::Search { table: 0, predicate: 0, key: None, operands: class, found }
}

fn answered(at: u64) -> ObservedOperation<'static> {
    ObservedOperation::Answered { at, unsent: at }
}

impl LogWriter {
    fn new() -> LogWriter {
        LogWriter { closed: true, fresh: true, ..LogWriter::default() }
    }

    fn add(
        &mut self,
        begin: u64,
        end: u64,
        outcome: TransactionOutcome,
        operations: &[ObservedOperation<'_>],
    ) {
        let mut draft = ObservedDraft::default();
        for operation in operations {
            draft.push(*operation, 0);
        }
        self.attempts += 1;
        let client = u32::try_from(self.attempts).unwrap();
        self.encoder
            .push(&Transaction { id: self.attempts, client, begin, end, outcome, mode: None }, &draft);
    }

    fn commit(&mut self, begin: u64, end: u64, operations: &[ObservedOperation<'_>]) {
        self.add(begin, end, TransactionOutcome::Committed, operations);
    }

    fn history(self) -> History {
        self.history_with(None)
    }

    fn history_with(mut self, committed: Option<CommittedWrites>) -> History {
        let class = ObservedColumn { name: "class".to_owned(), form: ValueForm::Integer };
        let table = ObservedTable {
            name: "t".to_owned(),
            key: KeyForm::Integer,
            columns: vec![class],
            closed: self.closed,
        };
        let equal = Predicate::Compare { column: 0, comparison: Comparison::Equal, operand: 0 };
        let column = |name: &str| ObservedColumn { name: name.to_owned(), form: ValueForm::Integer };
        let owner = ObservedTable {
            name: "owner".to_owned(),
            columns: vec![column("id"), column("kind")],
            ..table.clone()
        };
        // Of the owner of a row of t.
        let owned = Predicate::Linked(Box::new(Linked {
            table: 1,
            pairs: vec![(0, 0)],
            predicate: Predicate::Compare { column: 1, comparison: Comparison::Equal, operand: 0 },
        }));
        let description = ObservedDescription {
            tables: vec![table, owner],
            predicates: vec![equal.clone(), Predicate::True, owned, Predicate::Found(Box::new(equal))],
            statements: vec!["demo.sql:1: SELECT".to_owned()],
            horizon: HORIZON,
            committed,
            fresh: self.fresh,
            ..ObservedDescription::default()
        };
        let chunk = self.encoder.take();
        resolve(description, || Ok([Ok(&chunk)].into_iter())).expect("a log")
    }
}

/// The history as text, without its first lines.
fn told(history: &History) -> String {
    let text = text::print(history);
    text.lines().skip(2).collect::<Vec<_>>().join("\n")
}

fn kept(history: &History) -> Option<bool> {
    let promised = Some(Guarantee::of(Model::Serializable));
    check(history, &Options { promised, vouched: false, ..Options::default() }).verdict.kept
}

#[test]
fn the_row_lock_orders_blocks() {
    let mut log = LogWriter::new();
    log.commit(10, 50, &[read(1, 7), update(1, 102), answered(30)]);
    log.commit(0, 20, &[read(1, 7), update(1, 101), answered(9)]);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 10..50: r t 1 = init @0, w t 1 = v2/102 @0\n\
         T2 client=2 0..20: r t 1 = init @0, w t 1 = v1/101 @0"
    );
    assert_eq!(kept(&history), Some(false), "an update was lost");
}

#[test]
fn statements_that_overlap_are_not_ordered() {
    let mut log = LogWriter::new();
    log.commit(0, 20, &[update(1, 101)]);
    log.commit(5, 25, &[update(1, 102)]);
    log.commit(30, 40, &[read(1, 102), update(1, 103)]);
    let history = log.history();
    assert!(
        told(&history).contains("w t 1 = v1/101 @0\nT2 client=2 5..25: w t 1 = v1/102"),
        "{}",
        told(&history)
    );
    let undecided = |history: &History| {
        let report = check(history, &Options { vouched: false, ..Options::default() });
        assert_eq!(report.findings, []);
        report.blind.contains(&Blind::UndecidedOrder(1))
    };
    // The third began after the first had ended, and read the second one's version.
    assert!(!undecided(&history));
    let mut log = LogWriter::new();
    log.commit(0, 20, &[update(1, 101)]);
    log.commit(5, 25, &[update(1, 102)]);
    assert!(undecided(&log.history()));
}

#[test]
fn what_a_search_missed_is_a_dependency() {
    // Both count the rows of a class and insert one into it: write skew.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[search(&[5], &[]), insert(1, 101, &[5]), answered(10)]);
    log.commit(0, 20, &[search(&[5], &[]), insert(2, 102, &[5]), answered(10)]);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: m t 2 before v1 @0, w t 1 = v1/101 @0\n\
         T2 client=2 0..20: m t 1 before v1 @0, w t 2 = v1/102 @0"
    );
    assert_eq!(kept(&history), Some(false));
    // In another class it is none of their business.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[search(&[5], &[]), insert(1, 101, &[6]), answered(10)]);
    log.commit(0, 20, &[search(&[6], &[]), insert(2, 102, &[5]), answered(10)]);
    let history = log.history();
    assert_eq!(kept(&history), Some(false), "each inserts what the other searched for");
    let mut log = LogWriter::new();
    log.commit(0, 20, &[search(&[5], &[]), insert(1, 101, &[7]), answered(10)]);
    log.commit(0, 20, &[search(&[6], &[]), insert(2, 102, &[8]), answered(10)]);
    assert_eq!(kept(&log.history()), Some(true));
}

#[test]
fn a_row_that_is_deleted_can_be_missed_before_and_after() {
    let mut log = LogWriter::new();
    log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
    log.commit(8, 30, &[ObservedOperation::Delete { key: key(1), deleted: 101 }, answered(9)]);
    log.commit(7, 14, &[search(&[5], &[])]);
    let history = log.history();
    let last = told(&history).lines().last().map(str::to_owned);
    assert_eq!(last.as_deref(), Some("T3 client=3 7..14:"), "{}", told(&history));
    assert_eq!(history.provenance().map(|provenance| provenance.searches), Some(1));
}

/// The limits of what the last transaction missed: after the writer, before the writer.
fn missed(log: LogWriter) -> Vec<(Option<u64>, Option<u64>)> {
    let history = log.history();
    let last = history.transactions().len() - 1;
    let limits = history.operations(last).filter_map(|operation| match operation {
        Operation::Missed { after, before, .. } => Some((after, before)),
        _ => None,
    });
    limits.collect()
}

#[test]
fn a_row_that_was_there_before_is_missed_after_its_deletion() {
    let deletion = || ObservedOperation::Delete { key: key(1), deleted: 101 };
    let of = |begin: u64, fresh: bool, operations: &[ObservedOperation<'_>]| {
        let mut log = LogWriter { fresh, ..LogWriter::new() };
        log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
        log.commit(12, 30, &[deletion(), answered(14)]);
        log.commit(begin, 20, operations);
        missed(log)
    };
    let searches = &[search(&[5], &[])];
    assert_eq!(of(11, true, searches), [(Some(2), None)], "its birth was committed before");
    assert_eq!(of(9, true, searches), [], "it may have been born later");
    assert_eq!(of(11, false, searches), [], "a standby may lag behind");
    let reads_first = &[ObservedOperation::Read { key: key(1), writer: 101, columns: &[5] }, searches[0]];
    assert_eq!(of(9, false, reads_first), [(Some(2), None)], "its birth was read before");
}

#[test]
fn a_row_that_is_deleted_after_the_end_is_missed_before_its_birth() {
    let deletion = || ObservedOperation::Delete { key: key(1), deleted: 101 };
    let of = |deleted: u64| {
        let mut log = LogWriter::new();
        log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
        log.commit(12, 40, &[deletion(), answered(deleted)]);
        log.commit(8, 20, &[search(&[5], &[])]);
        missed(log)
    };
    assert_eq!(of(21), [(None, Some(1))]);
    assert_eq!(of(19), [], "its deletion may have been seen");
}

#[test]
fn what_must_have_been_found_is_missed_by_an_old_snapshot() {
    let mut log = LogWriter::new();
    log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
    log.commit(20, 30, &[ObservedOperation::Delete { key: key(1), deleted: 101 }, answered(25)]);
    log.commit(12, 14, &[search(&[5], &[])]);
    assert_eq!(missed(log), [], "or by one of the future");
    let mut log = LogWriter::new();
    log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
    log.commit(12, 14, &[search(&[5], &[])]);
    assert_eq!(missed(log), [(None, Some(1))]);
}

#[test]
fn what_its_writer_deletes_itself_was_never_to_be_found() {
    let mut log = LogWriter::new();
    let deletion = ObservedOperation::Delete { key: key(1), deleted: 101 };
    log.commit(12, 40, &[insert(1, 101, &[5]), deletion, answered(25)]);
    log.commit(8, 20, &[search(&[5], &[])]);
    assert_eq!(missed(log), []);
}

#[test]
fn a_version_that_its_own_transaction_did_not_write_is_a_doubt() {
    for (closed, expected) in [(true, None), (false, Some(true))] {
        let mut log = LogWriter { closed, ..LogWriter::default() };
        log.commit(0, 20, &[read(1, 7), update(1, 101), answered(10)]);
        // The server shows the writer of row 1 with row 2. If all writes are shown, that can't be.
        log.commit(30, 40, &[read(2, 101), update(2, 102), answered(35)]);
        let history = log.history();
        assert_eq!(kept(&history), expected, "{}", told(&history));
        assert_eq!(history.provenance().map(|provenance| provenance.reads_left), Some(1));
    }
}

#[test]
fn what_others_may_write_unseen_is_not_searched() {
    let mut log = LogWriter::new();
    log.commit(0, 20, &[search(&[5], &[]), insert(1, 101, &[5]), answered(10)]);
    log.commit(0, 20, &[search(&[5], &[]), insert(2, 102, &[5]), answered(10)]);
    // A version of somebody else.
    log.commit(0, 20, &[read(3, 555)]);
    let history = log.history();
    let provenance = history.provenance().expect("observed");
    assert_eq!((provenance.searches, provenance.searches_left, provenance.reads_left), (0, 2, 1));
    assert_eq!(kept(&history), Some(true));
}

#[test]
fn reads_of_what_was_rolled_back_are_found() {
    let mut log = LogWriter::new();
    log.add(0, 20, TransactionOutcome::Aborted, &[update(1, 101), answered(10)]);
    log.commit(11, 15, &[read(1, 101)]);
    assert_eq!(kept(&log.history()), Some(false));
}

#[test]
fn several_writes_of_one_transaction_are_one_version() {
    let mut log = LogWriter::new();
    log.commit(0, 20, &[update(1, 101), read(1, 101), update(1, 101), read(1, 101), answered(10)]);
    log.commit(21, 40, &[read(1, 101), update(1, 102), answered(30)]);
    let history = log.history();
    assert_eq!(
        told(&history).lines().next(),
        Some("T1 client=1 0..20: w t 1 = v1/101 @0, r t 1 = v1/101 @0, r t 1 = v1/101 @0")
    );
    assert_eq!(kept(&history), Some(true));
}

#[test]
fn a_row_written_again_after_a_subtransaction_is_read_from_its_last_write() {
    // 101, a savepoint with 102, released, and 101 again: others see 101.
    let mut log = LogWriter::new();
    let writes = [update(1, 101), update(1, 102), read(1, 102), update(1, 101), read(1, 101)];
    log.commit(0, 20, &[writes[0], writes[1], writes[2], writes[3], writes[4], answered(10)]);
    log.commit(30, 40, &[read(1, 101)]);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: w t 1 = v1/101 @0, w t 1 = v2/102 @0, r t 1 = v2/102 @0, w t 1 = v3/101 @0, \
         r t 1 = v3/101 @0\n\
         T2 client=2 30..40: r t 1 = v3/101 @0"
    );
    assert_eq!(kept(&history), Some(true));
    // What it overwrote itself must not be seen by others.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[writes[0], writes[1], writes[3], answered(10)]);
    log.commit(30, 40, &[read(1, 102)]);
    assert_eq!(kept(&log.history()), Some(false));
}

#[test]
fn what_is_read_is_not_a_deletion_that_may_be_as_old() {
    // Two single statements that overlap; the second reads what the first wrote, and deletes it.
    let mut log = LogWriter::new();
    log.commit(5, 25, &[read(1, 101), update(1, 103), delete(1, 103)]);
    log.commit(0, 20, &[update(1, 101)]);
    log.commit(0, 30, &[update(1, 102)]);
    let history = log.history();
    assert!(told(&history).starts_with("T1 client=1 5..25: r t 1 = v1/101 @0, w t 1 = v1 @0"));
    assert_eq!(kept(&history), Some(true));
}

#[test]
fn own_reads_of_writes_that_are_left_out_prove_nothing() {
    // Nothing proves which of the two came first, so only the last write of each is kept.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[update(1, 101), read(1, 101), update(1, 102), read(1, 102)]);
    log.commit(5, 25, &[update(1, 103)]);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: w t 1 = v1/102 @0, r t 1 = v1/102 @0\nT2 client=2 5..25: w t 1 = v1/103 @0"
    );
    assert_eq!(kept(&history), Some(true));
}

/// A write, its writer, and the row that it replaced or didn't.
fn delete(id: i64, deleted: u32) -> ObservedOperation<'static> {
    ObservedOperation::Delete { key: key(id), deleted }
}

fn kept_at(history: &History, model: Model) -> Option<bool> {
    let promised = Some(Guarantee::of(model));
    check(history, &Options { promised, vouched: false, ..Options::default() }).verdict.kept
}

#[test]
fn a_key_that_is_inserted_again_is_another_row() {
    // Both have the same snapshot; the second inserts the key once the first has deleted it, and
    // then sees two rows. PostgreSQL's repeatable read allows that.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[read(1, 7), delete(1, 7), answered(10)]);
    let late = [read(1, 7), answered(5), insert(1, 102, &[5]), answered(30), read(1, 7), read(1, 102)];
    log.commit(1, 40, &late);
    log.commit(50, 60, &[read(1, 102), update(1, 103), answered(55)]);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: r t 1 = init @0, w t 1 = v1 @0\n\
         T2 client=2 1..40: r t 1 = init @0, w t 1 = v3/102 @0, r t 1 = v3/102 @0\n\
         T3 client=3 50..60: r t 1 = v3/102 @0, w t 1 = v4/103 @0"
    );
    let report = check(&history, &Options { vouched: false, ..Options::default() });
    assert_eq!(report.findings, []);
    assert_eq!(kept(&history), Some(true));
    // But a row that was updated meanwhile is the same one.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[read(1, 7), update(1, 101), answered(10)]);
    log.commit(1, 40, &[read(1, 7), answered(5), update(1, 102), answered(30)]);
    assert_eq!(kept_at(&log.history(), Model::SnapshotIsolation), Some(false));
}

#[test]
fn a_row_that_was_deleted_unseen_is_not_the_one_that_was_inserted() {
    // Somebody deleted the row that the first one read, and the second one inserted the key again.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[read(1, 7), update(2, 101), answered(10)]);
    log.commit(1, 30, &[read(2, 7), insert(1, 102, &[5]), answered(25)]);
    log.commit(40, 50, &[search(&[5], &[])]);
    let history = log.history();
    assert_eq!(kept(&history), Some(true), "{}", told(&history));
    let provenance = history.provenance().expect("observed");
    assert_eq!((provenance.searches, provenance.searches_left), (0, 1), "the table isn't closed");
    // The same in the middle of a row's versions.
    let mut log = LogWriter::new();
    log.commit(0, 5, &[insert(1, 100, &[5]), answered(3)]);
    log.commit(6, 20, &[read(1, 100), update(2, 101), answered(10)]);
    log.commit(7, 30, &[read(2, 7), insert(1, 102, &[5]), answered(25)]);
    let history = log.history();
    assert_eq!(kept(&history), Some(true), "{}", told(&history));
}

#[test]
fn a_row_whose_insertion_is_left_out_did_not_exist_before() {
    // One of two overlapping single statements inserts the row and writes it again in a
    // subtransaction, so that only its last write is kept; then the row is deleted.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[search(&[5], &[]), insert(1, 101, &[5]), update(1, 102)]);
    log.commit(5, 25, &[read(1, 102), update(1, 103)]);
    log.commit(30, 40, &[delete(1, 103), answered(35)]);
    let mut all = LogWriter::new();
    all.encoder = log.encoder;
    let everything =
        ObservedOperation::Search { table: 0, predicate: 1, key: None, operands: &[], found: &[] };
    all.commit(1, 3, &[everything]);
    let history = all.history();
    assert!(!told(&history).contains("after"), "{}", told(&history));
    assert_eq!(kept(&history), Some(true));
}

#[test]
fn an_unknown_outcome_tells_nothing_of_a_row_that_is_inserted() {
    // The first one's update is read, so it was committed; then the second deletes the row, and the
    // third, with the same snapshot, inserts it.
    let mut log = LogWriter::new();
    log.commit(0, 5, &[read(2, 7), insert(1, 101, &[5]), answered(3)]);
    log.add(6, u64::MAX, TransactionOutcome::Unknown, &[read(1, 101), update(1, 102), answered(7)]);
    log.commit(20, 30, &[read(1, 102), answered(21), update(1, 103), delete(1, 103), answered(25)]);
    log.commit(20, 40, &[read(1, 102), answered(22), insert(1, 104, &[5]), answered(35)]);
    let history = log.history();
    assert_eq!(kept_at(&history, Model::SnapshotIsolation), Some(true), "{}", told(&history));
    assert_eq!(history.provenance().map(|provenance| provenance.reads_left), Some(0));
}

#[test]
fn a_deletion_that_is_left_out_may_have_been_looked_at() {
    // The first one's statement waits for the second, which deletes the row and inserts it again;
    // the first doesn't find it, then. Nothing proves the order of the first and the second.
    let key = Some(1);
    let by_key = ObservedOperation::Search { table: 0, predicate: 1, key, operands: &[], found: &[] };
    let mut log = LogWriter::new();
    log.commit(0, 9, &[update(1, 100), answered(5)]);
    log.commit(10, 30, &[by_key, update(1, 103)]);
    log.commit(10, 30, &[delete(1, 100), insert(1, 101, &[5])]);
    log.commit(40, 50, &[read(1, 103), delete(1, 103), answered(45)]);
    let history = log.history();
    assert_eq!(kept_at(&history, Model::ReadCommitted), Some(true));
}

#[test]
fn own_writes_that_are_not_seen_are_not_other_writes() {
    // A function updates the row, then the script reads it, and updates it itself.
    let mut log = LogWriter::new();
    let unseen = ObservedOperation::Unseen { table: 0 };
    log.commit(0, 20, &[unseen, read(1, 101), update(1, 101), read(1, 101), answered(10)]);
    let history = log.history();
    assert_eq!(told(&history), "T1 client=1 0..20: w t 1 = v1/101 @0, r t 1 = v1/101 @0");
    assert_eq!(kept(&history), Some(true));
}

#[test]
fn no_order_is_inferred_between_rows_with_the_same_key() {
    // The third and the fourth read the same version; the third deletes the row, and the fourth
    // inserts the key again. The order of the first two isn't known.
    let mut log = LogWriter::new();
    log.commit(0, 12, &[update(1, 101)]);
    log.commit(5, 20, &[read(1, 101), update(1, 102)]);
    log.commit(21, 40, &[read(1, 102), answered(25), delete(1, 102), answered(30)]);
    log.commit(21, 60, &[read(1, 102), answered(25), insert(1, 104, &[5]), answered(50)]);
    let history = log.history();
    let report = check(&history, &Options { vouched: false, ..Options::default() });
    assert_eq!(report.findings, [], "{}", told(&history));
    assert!(report.blind.contains(&Blind::UndecidedOrder(1)), "{:?}", report.blind);
    // The same where the order of the deletion and the insertion isn't known either.
    let mut log = LogWriter::new();
    log.commit(0, 40, &[read(1, 7), read(2, 7), delete(1, 7)]);
    log.commit(0, 60, &[read(1, 7), insert(1, 104, &[5]), read(2, 7)]);
    let history = log.history();
    let report = check(&history, &Options { vouched: false, ..Options::default() });
    assert_eq!(report.findings, [], "{}", told(&history));
}

#[test]
fn a_row_of_which_a_part_of_the_writes_was_shown_is_not_searched() {
    // A function writes the row again, so that it doesn't match any more; the second searches it
    // before the third lets it match.
    let committed = |transaction: u32, writes: usize| CommittedTransaction {
        transaction,
        writes: vec![
            CommittedWrite { table: 0, key: "1".to_owned(), what: CommittedChange::Updated };
            writes
        ],
    };
    let written = |writer: u32, columns: &'static [i64]| ObservedOperation::Write {
        key: key(1),
        writer,
        replaced: Replaced::Unknown,
        columns,
    };
    let history = |writes: usize| {
        let mut log = LogWriter::new();
        log.commit(0, 10, &[written(101, &[5]), ObservedOperation::Unseen { table: 0 }, answered(5)]);
        log.commit(9, 20, &[search(&[5], &[])]);
        let transactions = vec![committed(101, writes)];
        log.history_with(Some(CommittedWrites { tables: vec![0], transactions }))
    };
    assert!(told(&history(1)).contains("m t 1 before v1"), "{}", told(&history(1)));
    assert!(!told(&history(2)).contains("m t 1"), "{}", told(&history(2)));
}

#[test]
fn what_follows_a_deletion_was_inserted() {
    // As in the case of a key that is inserted again, but the insertion wasn't seen, only an update
    // after it.
    let mut log = LogWriter::new();
    log.commit(0, 20, &[read(1, 7), delete(1, 7), answered(10)]);
    let unseen = ObservedOperation::Unseen { table: 0 };
    let late = [read(1, 7), answered(5), unseen, update(1, 102), answered(30), read(1, 7), read(1, 102)];
    log.commit(1, 40, &late);
    let history = log.history();
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: r t 1 = init @0, w t 1 = v1 @0\n\
         T2 client=2 1..40: r t 1 = init @0, w t 1 = v3/102 @0, r t 1 = v3/102 @0"
    );
    let report = check(&history, &Options { vouched: false, ..Options::default() });
    assert_eq!(report.findings, []);
}

#[test]
fn a_subtransaction_may_have_written_again_unseen() {
    let writes = [update(1, 101), update(1, 102), answered(10)];
    let mut log = LogWriter::new();
    log.commit(0, 20, &writes);
    log.commit(30, 40, &[read(1, 101)]);
    assert_eq!(kept(&log.history()), Some(false));
    let mut log = LogWriter::new();
    log.commit(0, 20, &[writes[0], writes[1], ObservedOperation::Unseen { table: 0 }, writes[2]]);
    log.commit(30, 40, &[read(1, 101)]);
    assert_eq!(kept(&log.history()), Some(true));
}

#[test]
fn a_transaction_may_have_inserted_again_what_it_deleted() {
    // A MERGE that shows nothing inserts the row once more, by the same transaction.
    let history = |writes: &[CommittedChange]| {
        let mut log = LogWriter::new();
        let unseen = ObservedOperation::Unseen { table: 0 };
        log.commit(0, 20, &[insert(1, 101, &[5]), delete(1, 101), unseen, answered(10)]);
        log.commit(30, 40, &[read(1, 101)]);
        let write = |what: &CommittedChange| CommittedWrite { table: 0, key: "1".to_owned(), what: *what };
        let writes = writes.iter().map(write).collect();
        let transactions = vec![CommittedTransaction { transaction: 101, writes }];
        log.history_with(Some(CommittedWrites { tables: vec![0], transactions }))
    };
    let (inserted, deleted) = (CommittedChange::Inserted, CommittedChange::Deleted);
    assert_eq!(kept(&history(&[inserted, deleted])), Some(false), "others must not see what it deleted");
    assert_eq!(kept(&history(&[inserted, deleted, inserted])), Some(true));
}

#[test]
fn who_reads_what_existed_before_an_insert_shows_that_a_deletion_was_not_seen() {
    // So other writes of the table may not have been seen either, and nothing is searched in it.
    let history = |writer: u32| {
        let mut log = LogWriter::new();
        log.commit(0, 10, &[insert(1, 101, &[5]), answered(5)]);
        log.commit(0, 12, &[read(1, writer)]);
        log.commit(20, 30, &[search(&[5], &[])]);
        told(&log.history())
    };
    assert!(history(101).contains("m t 1"), "{}", history(101));
    assert!(!history(7).contains("m t 1"), "{}", history(7));
}

#[test]
fn unseen_writes_come_before_the_reads_of_their_own_rows_only() {
    // A function updates rows 1 and 2, at different times.
    let mut log = LogWriter::new();
    let unseen = ObservedOperation::Unseen { table: 0 };
    log.commit(0, 20, &[unseen, update(3, 101), read(1, 101), read(2, 7), unseen, answered(10)]);
    let write = |key: &str| CommittedWrite { table: 0, key: key.to_owned(), what: CommittedChange::Updated };
    let transactions =
        vec![CommittedTransaction { transaction: 101, writes: ["3", "1", "2"].map(write).to_vec() }];
    let history = log.history_with(Some(CommittedWrites { tables: vec![0], transactions }));
    assert_eq!(
        told(&history),
        "T1 client=1 0..20: w t 3 = v1/101 @0, w t 1 = v1/101, r t 1 = v1/101 @0, r t 2 = init @0, \
         w t 2 = v1/101"
    );
    assert_eq!(kept(&history), Some(true));
}

/// A table with a text as key and another text, and a search by its beginning.
fn with_texts() -> ObservedDescription {
    let column = |name: &str, form| ObservedColumn { name: name.to_owned(), form };
    let columns = vec![column("name", ValueForm::Text), column("size", ValueForm::Integer)];
    let table = ObservedTable { name: "t".to_owned(), key: KeyForm::Numbered, columns, closed: true };
    let predicates = vec![Predicate::And(vec![
        Predicate::Not(Box::new(Predicate::Like { column: 0, operand: 1, escape: None })),
        Predicate::In { column: 1, operands: vec![0] },
        Predicate::IsNull(0),
    ])];
    let texts = ["a", "b", "c"].map(str::to_owned).to_vec();
    ObservedDescription { tables: vec![table], predicates, texts, ..ObservedDescription::default() }
}

#[test]
fn texts_and_times_of_another_machine_become_those_of_this_one() {
    // The same attempt, where "b" and "a" have the numbers 0 and 1, and where they have 1 and 0.
    let attempt = |[b, a]: [i64; 2], at: u64, unsent: u64, (begin, end): (u64, u64)| {
        let mut draft = ObservedDraft::default();
        let columns = [a, 1];
        let key = Key { table: 0, id: b };
        draft.push(ObservedOperation::Read { key, writer: 7, columns: &columns }, 1);
        let nothing = [NULL, 0];
        let replaced = Replaced::By(7);
        draft.push(ObservedOperation::Write { key, writer: 8, replaced, columns: &nothing }, 2);
        draft.push(ObservedOperation::Delete { key, deleted: 8 }, 3);
        let (operands, found) = ([0, a], [a, b]);
        let search = ObservedOperation::Search {
            table: 0,
            predicate: 0,
            key: Some(b),
            operands: &operands,
            found: &found,
        };
        draft.push(search, 4);
        draft.push(ObservedOperation::Answered { at, unsent }, 0);
        draft.push(ObservedOperation::Unseen { table: 0 }, 5);
        let mut encoder = ObservedEncoder::default();
        let outcome = TransactionOutcome::Committed;
        let mode = Some(Mode { read_only: true, ..Mode::of(Level::Serializable) });
        encoder.push(&Transaction { id: 1, client: 2, begin, end, outcome, mode }, &draft);
        encoder.take()
    };
    let there = attempt([0, 1], 50, 50, (40, 60));
    let mut adopted = ObservedEncoder::default();
    adopted.adopt(&there, &with_texts(), 5, &[1, 0]).unwrap();
    assert_eq!(adopted.take(), attempt([1, 0], 55, 45, (35, 65)));
    assert!(adopted.adopt(&there, &with_texts(), 5, &[1]).is_err(), "it has one text only");
    assert!(adopted.adopt(&there[..there.len() - 1], &with_texts(), 5, &[1, 0]).is_err());
}

#[test]
fn a_transaction_without_times_stays_without() {
    let outcome = TransactionOutcome::Committed;
    let widened = |begin, end| {
        let mut transaction = Transaction { id: 1, client: 0, begin, end, outcome, mode: None };
        transaction.widen(5);
        (transaction.begin, transaction.end)
    };
    assert_eq!(widened(0, 0), (0, 0));
    assert_eq!(widened(3, u64::MAX), (0, u64::MAX));
    assert_eq!(widened(30, 40), (25, 45));
}

#[test]
fn of_two_updates_of_one_version_one_is_lost_whichever_came_first() {
    let lost = |both: bool| {
        let mut log = LogWriter::new();
        // In autocommit nothing proves the order of two writers that overlap.
        let of = |writer: u32| ObservedOperation::Answered { at: u64::from(writer), unsent: 0 };
        log.commit(1, 200, &[read(1, 7), update(1, 101), of(190)]);
        let first = if both { read(1, 7) } else { read(2, 7) };
        log.commit(1, 200, &[first, update(1, 102), of(190)]);
        let report = check(&log.history(), &Options { vouched: false, ..Options::default() });
        report.findings.iter().map(|finding| finding.anomaly).collect::<Vec<_>>()
    };
    assert_eq!(lost(true), [crate::Anomaly::LostUpdate]);
    assert_eq!(lost(false), []);
}

fn owner(id: i64) -> Key {
    Key { table: 1, id }
}

/// A join of t with its owners of a kind.
fn join<'o>(kind: &'o [i64], found: &'o [i64]) -> ObservedOperation<'o> {
    ObservedOperation::Search { table: 0, predicate: 2, key: None, operands: kind, found }
}

/// What the first attempt missed, which looks for owners of the kind 1 at 20..30, if another one inserts
/// a row of the owner 7 afterwards.
fn missed_of_owner(before: impl FnOnce(&mut LogWriter), fresh: bool) -> String {
    let mut log = LogWriter { fresh, ..LogWriter::new() };
    log.commit(20, 30, &[join(&[1], &[])]);
    log.commit(21, 40, &[insert(1, 102, &[7]), answered(25)]);
    before(&mut log);
    let text = told(&log.history());
    text.lines().next().unwrap().split_once(": ").map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

#[test]
fn a_join_missed_a_row_whose_other_side_surely_was_there() {
    let missed = "m t 1 before v1 @0";
    let seen = |kind: i64| {
        move |log: &mut LogWriter| {
            let columns = [7, kind];
            log.commit(50, 60, &[ObservedOperation::Read { key: owner(7), writer: 7, columns: &columns }]);
        }
    };
    assert_eq!(missed_of_owner(seen(1), true), missed, "it is known from another statement");
    assert_eq!(missed_of_owner(seen(1), false), "", "a snapshot may have had an older owner");
    assert_eq!(missed_of_owner(seen(2), true), "", "an owner of another kind");
    assert_eq!(missed_of_owner(|_| {}, true), "", "nobody knows the owner");
    let inserted = |begin: u64, end: u64| {
        move |log: &mut LogWriter| {
            let key = owner(7);
            let row =
                ObservedOperation::Write { key, writer: 103, replaced: Replaced::Nothing, columns: &[7, 1] };
            log.commit(begin, end, &[row, answered(end - 1)]);
        }
    };
    assert_eq!(missed_of_owner(inserted(5, 10), true), missed, "the owner was there before");
    assert_eq!(missed_of_owner(inserted(15, 21), true), "", "the owner may be newer than the snapshot");
    let updated = |log: &mut LogWriter| {
        seen(1)(log);
        let key = owner(7);
        let row = ObservedOperation::Write { key, writer: 103, replaced: Replaced::By(7), columns: &[7, 2] };
        log.commit(15, 24, &[row, answered(18)]);
    };
    assert_eq!(missed_of_owner(updated, true), "", "the snapshot may have had the owner of another kind");
}

#[test]
fn a_table_that_somebody_rewrites_is_not_searched() {
    // The third transaction has a snapshot of before the copy, in which the copied rows aren't there.
    let copied = 150;
    let run = |by: &[ObservedOperation<'static>]| {
        let mut log = LogWriter::new();
        log.commit(0, 10, &[insert(1, 101, &[7]), answered(5)]);
        log.commit(20, 60, &[search(&[7], &[]), update(2, 103), answered(50)]);
        log.commit(30, 70, by);
        log.history()
    };
    let history = run(&[]);
    assert!(told(&history).contains("m t 1 before v1"), "{}", told(&history));
    let read = ObservedOperation::Read { key: key(1), writer: copied, columns: &[7] };
    let replaced = Replaced::By(copied);
    let write = ObservedOperation::Write { key: key(1), writer: 104, replaced, columns: &[8] };
    let delete = ObservedOperation::Delete { key: key(1), deleted: copied };
    for by in [read, write, delete] {
        let history = run(&[by]);
        assert!(!told(&history).contains("m t"), "{}", told(&history));
        assert_ne!(kept(&history), Some(false));
    }
}

/// What the first attempt missed, which at 20..30 found a row of a class that isn't shown; at most one
/// row has it.
fn found_unshown(key: Option<i64>, others: impl FnOnce(&mut LogWriter)) -> String {
    let mut log = LogWriter::new();
    let found = ObservedOperation::Search { table: 0, predicate: 3, key, operands: &[7], found: &[] };
    log.commit(20, 30, &[found]);
    log.commit(0, 10, &[insert(1, 101, &[7]), answered(5)]);
    log.commit(
        21,
        40,
        &[
            ObservedOperation::Write {
                key: self::key(1),
                writer: 102,
                replaced: Replaced::By(101),
                columns: &[8],
            },
            answered(25),
        ],
    );
    others(&mut log);
    let text = told(&log.history());
    text.lines().next().unwrap().split_once(": ").map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

#[test]
fn a_row_that_is_found_and_not_shown_was_in_a_version_that_matches() {
    let missed = "m t 1 after v1 before v2 @0";
    assert_eq!(found_unshown(Some(1), |_| {}), missed, "by its key");
    assert_eq!(found_unshown(None, |_| {}), missed, "the only one that had the class");
    assert_eq!(found_unshown(Some(2), |_| {}), "", "a row that nobody writes");
    let other = |log: &mut LogWriter| log.commit(15, 27, &[insert(2, 103, &[9]), answered(18)]);
    assert_eq!(found_unshown(None, other), missed, "another class");
    // It existed before, and its class isn't known.
    let unknown = |log: &mut LogWriter| log.commit(15, 27, &[update(2, 103), answered(18)]);
    assert_eq!(found_unshown(None, unknown), "");
    assert_eq!(found_unshown(Some(1), unknown), missed);
    let before = |log: &mut LogWriter| {
        let replaced = Replaced::By(7);
        log.commit(
            41,
            60,
            &[
                ObservedOperation::Read { key: key(2), writer: 7, columns: &[7] },
                ObservedOperation::Write { key: key(2), writer: 103, replaced, columns: &[9] },
            ],
        );
    };
    assert_eq!(found_unshown(None, before), "", "either of two");
}
