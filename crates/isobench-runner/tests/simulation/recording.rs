//! Recordings of the reads and writes of transactions: exact in every protocol and under every
//! fault.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use isobench_isolation::History;
use isobench_isolation::history::binary::read;
use isobench_isolation::history::{Operation, Transaction, TransactionOutcome, text};
use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, OnError, Protocol, RetryPolicy, Rules, StopCondition, Storage, Urgency};
use isobench_testkit::simulated::{Answer, Fault, Faults, Loss, On, Truth, When, Written};
use proptest::prelude::*;

use crate::chaos::{EXTENDED, Scripts, cases};
use crate::harness::{Case, RunResult, millis, tries};

/// Reads a register and writes it. Commands: 0 `\set`, 1 BEGIN, 2 SELECT, 3 UPDATE, 4 END.
const REGISTER: &str = "\\set id random(1, 3)
BEGIN;
--@ read registers key=:id version=$1 value=$2
SELECT version, writer FROM registers WHERE id = :id;
--@ write registers key=:id version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :id RETURNING version;
END;
";

/// The same in one request.
const AT_ONCE: &str = "\\set id random(1, 3)
--@ write registers key=:id version=$1 value=:attempt_id
BEGIN\\; UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :id RETURNING version\\; COMMIT;
";

/// A statement outside a block, which commits by itself.
const ALONE: &str = "\\set id random(1, 3)
--@ write registers key=:id version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :id RETURNING version;
";

/// Two registers in a pipeline, with the same variable for both.
const PIPELINE: &str = "\\startpipeline
BEGIN;
\\set id 1
--@ write registers key=:id version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :id RETURNING version;
\\sleep 1 ms
\\set id 2
--@ read registers key=:id version=$1 value=$2
SELECT version, writer FROM registers WHERE id = :id;
--@ write registers key=:id version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :id RETURNING version;
END;
\\endpipeline
";

/// Writes and rolls back, or commits.
const ROLLBACK: &str = "BEGIN;
--@ write registers key=1 version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = 1 RETURNING version;
\\if random(1, 2) = 1
ROLLBACK;
\\else
COMMIT;
\\endif
";

/// One line per transaction.
fn printed(history: &History) -> String {
    text::print(history)
}

/// The operations of all transactions, without anything else.
fn operations(history: &History) -> Vec<String> {
    let lines = printed(history);
    let lists = lines.lines().filter_map(|line| line.split_once(": ")).map(|(_, list)| list);
    lists.flat_map(|list| list.split(", ")).map(str::to_owned).collect()
}

fn outcomes(history: &History) -> Vec<TransactionOutcome> {
    history.transactions().iter().map(|transaction| transaction.outcome).collect()
}

#[test]
fn a_history_is_exact() {
    let script = REGISTER.replace("random(1, 3)", "1 + :client_id");
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults =
        Faults::none().and(On::Update, When::Nth(0, 1), conflict).and(On::Commit, When::Nth(1, 1), conflict);
    let (ran, history) = Case::new(&script).clients(2).transactions(2).faults(faults).run_recorded();
    assert_eq!((ran.ledger.attempts.started, ran.ledger.retries), (6, 2));
    assert_eq!(
        printed(&history),
        "\
T2 client=0 0..4000000: r registers 1 = v0/0, w registers 1 = v1/2
T3 client=1 0..4000000: r registers 2 = v0/0, w registers 2 = v1/3
T4 client=0 4000000..8000000 aborted: r registers 1 = v1/2
T5 client=1 4000000..8000000 aborted: r registers 2 = v1/3, w registers 2 = v2/5
T6 client=0 8000000..12000000: r registers 1 = v1/2, w registers 1 = v2/6
T7 client=1 8000000..12000000: r registers 2 = v1/3, w registers 2 = v2/7
"
    );
}

#[test]
fn every_protocol_and_a_session_for_each_transaction_give_the_same() {
    let run = |protocol| {
        let mut case = Case::new(REGISTER).clients(3).transactions(20).protocol(protocol);
        case.settings.pieces = Some(7);
        case
    };
    let (_, simple) = run(Protocol::Simple).run_recorded();
    assert_eq!(simple.transactions().len(), 60);
    for protocol in [Protocol::Extended, Protocol::Prepared] {
        let (_, other) = run(protocol).run_recorded();
        assert_eq!(other.operation_count(), simple.operation_count());
        assert_eq!(outcomes(&other), outcomes(&simple));
    }
    let (ran, history) = run(Protocol::Prepared).connect_each(millis(1)).run_recorded();
    check(&ran, &history);
    assert_eq!(history.transactions().len(), 60);
}

#[test]
fn attempts_are_numbered_on_from_run_to_run() {
    let mut stage = Case::new(REGISTER).clients(2).recorded().stage();
    let first = stage.run(StopCondition::Transactions(1));
    assert_eq!(stage.recording().transactions(), 2);
    let second = stage.run(StopCondition::Transactions(2));
    assert_eq!(stage.recording().transactions(), 6);
    assert!(stage.recording().size() > 0);
    let (truth, history) = stage.end_recorded(&[&first, &second]);
    let ids: BTreeSet<u64> = history.transactions().iter().map(|transaction| transaction.id).collect();
    assert_eq!(ids, (2..8).collect());
    check_writes(&truth, &history);
    assert!(
        history.transactions().is_sorted_by_key(|transaction| (transaction.begin > 0, transaction.begin))
    );
}

#[test]
fn a_number_is_given_without_a_recording_too_but_not_by_pgbench_s_rules() {
    let script = "SELECT :attempt_id;\n";
    let texts = |case: Case| case.clients(3).transactions(2).run().truth.texts(1).join("; ");
    assert_eq!(texts(Case::new(script)), "SELECT 4; SELECT 7");
    assert_eq!(texts(Case::new(script).rules(Rules::Pgbench)), "SELECT :attempt_id; SELECT :attempt_id");
    let mut own = Case::new(script);
    own.variables.push(("attempt_id", 5));
    assert_eq!(texts(own), "SELECT 5; SELECT 5");
}

#[test]
fn attempts_of_a_transaction_are_counted_but_not_by_pgbench_s_rules() {
    let script = "\\set n :attempt + 0\nUPDATE t SET v = :attempt, w = :n;\n";
    let conflicts = || {
        let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
        Faults::none().and(On::Update, When::First(2), conflict)
    };
    let texts = |case: Case| case.faults(conflicts()).transactions(2).run().truth.texts(0).join("; ");
    let counted = [1, 2, 3, 1].map(|number| format!("UPDATE t SET v = {number}, w = {number}"));
    assert_eq!(texts(Case::new(script)), counted.join("; "));
    let plain = "UPDATE t SET v = :attempt;\n";
    let unset = ["UPDATE t SET v = :attempt"; 4].join("; ");
    assert_eq!(texts(Case::new(plain).rules(Rules::Pgbench)), unset);
    let mut own = Case::new(plain);
    own.variables.push(("attempt", 5));
    assert_eq!(texts(own), unset.replace(":attempt", "5"));
}

/// A retry has the number of its transaction; each run of the fleet starts at 1.
#[test]
fn transactions_of_a_client_are_counted_but_not_by_pgbench_s_rules() {
    let script = "\\set n :transaction + 0\nUPDATE t SET v = :n;\n";
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Update, When::First(2), conflict);
    let mut stage = Case::new(script).clients(2).faults(faults).stage();
    stage.run(StopCondition::Transactions(2));
    let both = stage.run(StopCondition::Transactions(1));
    let counted = [1, 1, 1, 2, 1].map(|number| format!("UPDATE t SET v = {number}"));
    assert_eq!(both.truth.texts(0), counted);
    let plain = "UPDATE t SET v = :transaction;\n";
    let texts = |case: Case| case.transactions(1).run().truth.texts(0).join("; ");
    assert_eq!(texts(Case::new(plain).rules(Rules::Pgbench)), plain.trim_end_matches(";\n"));
    let mut own = Case::new(plain);
    own.variables.push(("transaction", 5));
    assert_eq!(texts(own), "UPDATE t SET v = 5");
}

/// The end of one client's attempt under this fault.
fn struck(on: On, fault: Fault) -> (RunResult, History) {
    Case::new(REGISTER).retry(tries(1)).faults(Faults::none().and(on, When::Nth(0, 0), fault)).run_recorded()
}

#[test]
fn every_end_of_an_attempt_has_its_outcome() {
    use TransactionOutcome::{Aborted, Committed, Unknown};
    let lost = Fault::Lost(Loss::Closed);
    for (on, fault, outcome, count) in [
        (On::Update, Fault::Notice, Committed, 2),
        (On::Commit, Fault::TerminatedAfterReply, Committed, 2),
        (On::Commit, Fault::Error(SqlState::SERIALIZATION_FAILURE), Aborted, 2),
        (On::Commit, Fault::AnsweredWithRollback, Aborted, 2),
        (On::Update, Fault::Error(SqlState::DEADLOCK_DETECTED), Aborted, 1),
        (On::Update, Fault::Error(SqlState::UNDEFINED_TABLE), Aborted, 1),
        (On::Update, lost, Aborted, 1),
        (On::Update, Fault::LostAfter(Loss::Reset), Aborted, 1),
        // COMMIT had already been sent.
        (On::Update, Fault::LostWhenIdle(millis(0), Loss::Reset), Unknown, 2),
        (On::Commit, lost, Unknown, 2),
        (On::Commit, Fault::LostAfter(Loss::Closed), Unknown, 2),
        (On::Commit, Fault::Unknown { committed: true }, Unknown, 2),
        (On::Commit, Fault::UnknownThenLost { committed: false }, Unknown, 2),
        (On::Commit, Fault::ErrorThenLost(SqlState::DEADLOCK_DETECTED), Aborted, 2),
        (On::Commit, Fault::TERMINATED, Unknown, 2),
    ] {
        let (ran, history) = struck(on, fault);
        check(&ran, &history);
        assert_eq!(
            (outcomes(&history), history.operation_count()),
            (vec![outcome], count),
            "{on:?} {fault:?}"
        );
        assert_eq!(history.transactions()[0].end == u64::MAX, outcome == Unknown);
        assert_eq!(history.dropped(), 0);
    }
}

#[test]
fn what_is_cut_off_is_unknown_only_if_it_was_committing() {
    for (on, outcome) in
        [(On::Update, TransactionOutcome::Aborted), (On::Commit, TransactionOutcome::Unknown)]
    {
        let hang = Fault::Hang { cancellable: false };
        let (_, history) = Case::new(REGISTER)
            .faults(Faults::none().and(on, When::Nth(0, 0), hang))
            .interrupt(millis(10), Urgency::Now)
            .run_recorded();
        assert_eq!(outcomes(&history), [outcome], "{on:?}");
    }
    let hang = Fault::Hang { cancellable: true };
    let (_, history) = Case::new(REGISTER)
        .faults(Faults::none().and(On::Commit, When::Nth(0, 0), hang))
        .interrupt(millis(10), Urgency::Now)
        .run_recorded();
    assert_eq!(outcomes(&history), [TransactionOutcome::Aborted], "it was cancelled");
}

/// The operations in the lost reply are missing, and the history reports that.
#[test]
fn a_lost_reply_makes_the_history_incomplete() {
    for script in [ALONE, AT_ONCE] {
        for fault in [Fault::LostAfter(Loss::Closed), Fault::Lost(Loss::Closed)] {
            let faults = Faults::none().and(On::Update, When::Nth(0, 0), fault);
            let (ran, history) = Case::new(script).faults(faults).run_recorded();
            assert_eq!(ran.ledger.attempts.ambiguous, 1);
            assert_eq!((history.transactions().len(), history.dropped()), (0, 1), "{script}");
        }
    }
}

#[test]
fn a_pipeline_notes_its_variables_when_they_are_sent() {
    for protocol in EXTENDED {
        let (ran, history) = Case::new(PIPELINE).protocol(*protocol).transactions(2).run_recorded();
        check(&ran, &history);
        let expected = [
            "w registers 1 = v1/1",
            "r registers 2 = v0/0",
            "w registers 2 = v1/1",
            "w registers 1 = v2/2",
            "r registers 2 = v1/1",
            "w registers 2 = v2/2",
        ];
        assert_eq!(operations(&history), expected);
    }
}

#[test]
fn what_a_script_rolls_back_is_aborted() {
    let (ran, history) = Case::new(ROLLBACK).transactions(40).run_recorded();
    let transactions = ran.ledger.transactions;
    let aborted =
        outcomes(&history).iter().filter(|outcome| **outcome == TransactionOutcome::Aborted).count();
    assert!((5..35).contains(&aborted));
    assert_eq!((transactions.total, transactions.rolled_back), (40, aborted as u64));
    check_writes(&ran.truth, &history);
}

/// Work that a script has committed stays committed if the rest of the script fails.
#[test]
fn an_error_after_the_commit_doesnt_undo_it() {
    let script = format!("{REGISTER}INSERT INTO h VALUES (1);\n");
    let error = Fault::Error(SqlState::UNDEFINED_TABLE);
    let (ran, history) =
        Case::new(&script).faults(Faults::none().and(On::Insert, When::Nth(0, 0), error)).run_recorded();
    assert_eq!((ran.ledger.attempts.errored, outcomes(&history)), (1, vec![TransactionOutcome::Committed]));
    check_writes(&ran.truth, &history);
}

#[test]
fn an_error_after_the_commit_in_a_pipeline_doesnt_undo_it_either() {
    let script = PIPELINE.replace("\\endpipeline", "INSERT INTO h VALUES (1);\n\\endpipeline");
    let error = Fault::Error(SqlState::UNDEFINED_TABLE);
    let (ran, history) = Case::new(&script)
        .protocol(Protocol::Extended)
        .faults(Faults::none().and(On::Insert, When::Nth(0, 0), error))
        .run_recorded();
    assert_eq!((ran.ledger.attempts.errored, outcomes(&history)), (1, vec![TransactionOutcome::Committed]));
    check_writes(&ran.truth, &history);
}

#[test]
fn a_missing_row_is_read_by_its_own_statement() {
    let script = "BEGIN;\n--@ read registers key=1 version=$1\n\
        SELECT version, writer FROM registers WHERE id = 1;\n--@ read registers key=-1 version=$1\n\
        SELECT version, writer FROM registers WHERE id = -1;\n--@ read registers key=2 version=$1\n\
        SELECT version, writer FROM registers WHERE id = 2;\nEND;\n";
    let (_, history) = Case::new(script).run_recorded();
    assert_eq!(operations(&history), ["r registers 1 = v0", "r registers -1 = init", "r registers 2 = v0"]);
}

fn answered(
    script: &str,
    columns: &[&'static str],
    rows: &[&[Option<&'static str>]],
) -> (RunResult, History) {
    let mut case = Case::new(script);
    let rows = rows.iter().map(|row| row.to_vec()).collect();
    case.settings.answers.push(("FROM q", Answer { columns: columns.to_vec(), rows }));
    case.run_recorded()
}

#[test]
fn every_kind_of_line() {
    let row: &[Option<&str>] = &[Some("5"), Some("3"), None];
    let other: &[Option<&str>] = &[Some("-6"), Some("0"), Some("12")];
    let list: &[Option<&str>] = &[Some("5"), Some("{1,2}")];
    let texts: &[Option<&str>] = &[Some("6"), Some("3, 4")];
    let empty: &[Option<&str>] = &[Some("7"), Some("{}")];
    let null: &[Option<&str>] = &[Some("8"), None];
    for (line, rows, expected) in [
        ("read t key=$1 version=$2 value=$3", vec![row, other], vec!["r t 5 = v3", "r t -6 = v0/12"]),
        ("read t key=9 value=$3", vec![row], vec!["r t 9 = init"]),
        ("read t key=9 version=4", vec![row], vec!["r t 9 = v4"]),
        ("read t key=9 value=$1", vec![], vec!["r t 9 = init"]),
        ("read t key=$1 value=$1", vec![], vec![]),
        (
            "write t key=$1 version=$2 value=:attempt_id",
            vec![row, other],
            vec!["w t 5 = v3/1", "w t -6 = v0/1"],
        ),
        ("write t key=1 version=2", vec![row, other], vec!["w t 1 = v2"]),
        ("write t key=1 version=2", vec![], vec![]),
        ("insert t key=$1 group=2", vec![row, other], vec!["i t 5 in 2", "i t -6 in 2"]),
        ("append t key=2 element=:attempt_id", vec![row], vec!["a t 2 += 1"]),
        ("append t key=$1 element=$2", vec![], vec![]),
        (
            "read-list t key=$1 elements=$2",
            vec![list, texts, empty, null],
            vec!["l t 5 = [1 2]", "l t 6 = [3 4]", "l t 7 = []", "l t 8 = []"],
        ),
        ("read-list t key=4 elements=$2", vec![], vec!["l t 4 = []"]),
        ("read-list t key=$1 elements=$2", vec![], vec![]),
        ("read-group t group=4 key=$1", vec![row, other], vec!["g t 4 = [5 -6]"]),
        ("read-group t group=4 key=$1", vec![], vec!["g t 4 = []"]),
    ] {
        let (ran, history) = answered(&format!("--@ {line}\nSELECT * FROM q;\n"), &["a", "b", "c"], &rows);
        assert_eq!(operations(&history), expected, "{line}");
        assert_eq!(ran.ledger.transactions.committed, 1);
    }
}

#[test]
fn several_lines_tell_of_the_same_rows_in_their_order() {
    let script = "--@ read t key=$1 version=$2\n--@ write u key=$1 version=$3\n\
        --@ read-group v group=:client_id key=$1\n--@ read-group t group=1 key=$2\nSELECT * FROM q;\n";
    let rows: &[&[Option<&str>]] = &[&[Some("1"), Some("2"), Some("3")], &[Some("4"), Some("5"), Some("6")]];
    let (_, history) = answered(script, &["a", "b", "c"], rows);
    let expected = ["r t 1 = v2", "w u 1 = v3", "r t 4 = v5", "w u 4 = v6", "g v = [1 4]", "g t 1 = [2 5]"];
    assert_eq!(operations(&history), expected);
}

#[test]
fn a_result_that_is_observed_may_be_stored() {
    let script = "--@ read t key=1 value=$1\nSELECT v FROM q \\gset\n--@ write t key=1 value=:v\n\
        UPDATE t SET v = :v;\n";
    let script = format!("BEGIN;\n{script}END;\n");
    for protocol in Protocol::ALL {
        let mut case = Case::new(&script).protocol(protocol);
        case.settings.answers.push(("FROM q", Answer::column("v", &["77"])));
        let (ran, history) = case.run_recorded();
        assert_eq!(operations(&history), ["r t 1 = 77", "w t 1 = 77"]);
        assert_eq!(ran.truth.matching(0, "UPDATE"), ["UPDATE t SET v = 77"]);
    }
}

#[test]
fn assertions_are_counted_in_committed_transactions() {
    let script = "BEGIN;\n--@ holds total value=$1\n--@ holds other value=$2\nSELECT * FROM q;\n\
        \\if :client_id = 1\nROLLBACK;\n\\else\nEND;\n\\endif\n";
    let rows: &[(&[Option<&str>], u64)] = &[
        (&[Some("t"), Some("true")], 0),
        (&[Some("f"), Some("1")], 1),
        (&[None, Some("TRUE")], 1),
        (&[Some("0"), Some("t")], 1),
    ];
    for (row, broken) in rows {
        let mut case = Case::new(script).clients(2).transactions(3);
        let rows = vec![vec![Some("t"), Some("t")], row.to_vec(), vec![Some("t"), Some("t")]];
        case.settings.answers.push(("FROM q", Answer { columns: vec!["a", "b"], rows }));
        let (ran, history) = case.run_recorded();
        let [total, other] = &ran.outcome.scripts[0].assertions[..] else { panic!("two assertions") };
        assert_eq!((total.name.as_str(), total.checked, total.broken), ("total", 3, 3 * broken), "{row:?}");
        assert_eq!((other.name.as_str(), other.checked, other.broken), ("other", 3, 0), "{row:?}");
        assert_eq!(history.transactions().len(), 0, "assertions are no operations");
    }
}

#[test]
fn what_doesnt_fit_ends_the_client_and_says_why() {
    for (line, row, problem) in [
        ("read t key=$1 value=$2", [Some("x"), None], "the key is \"x\", which is no 64-bit integer"),
        (
            "read t key=$1 value=$2",
            [Some("1"), Some("9223372036854775808")],
            "the value is \"9223372036854775808\", which is no",
        ),
        ("read t key=$1 value=$2", [None, Some("1")], "the key is NULL"),
        ("read t key=$3 value=$2", [Some("1"), None], "the key is to be column 3, and the result has 2"),
        (
            "read t key=$1 version=$2",
            [Some("1"), Some("-1")],
            "the version is -1, and versions are counted from 0",
        ),
        ("insert t key=$1 group=$2", [Some("1"), None], "the group is NULL"),
        ("append t key=$1 element=$2", [Some("1"), Some("1.5")], "the element is \"1.5\""),
        ("read-list t key=$1 elements=$2", [Some("1"), Some("{1,x}")], "an element of \"{1,x}\" is \"x\""),
        ("read-list t key=$1 elements=$2", [Some("1"), Some("{1,NULL}")], "is \"NULL\""),
        ("holds total value=$2", [Some("1"), Some("maybe")], "the value is \"maybe\", which is no boolean"),
        ("read t key=:nothing value=$2", [Some("1"), None], "undefined variable \"nothing\""),
    ] {
        let script = format!("SELECT 1;\n--@ {line}\nSELECT * FROM q;\n");
        let (ran, history) = answered(&script, &["a", "b"], &[&row]);
        let (place, AbortCause::Annotation(why)) = ran.abort() else { panic!("{:?}", ran.events) };
        assert!(why.starts_with(&format!("test.sql:2: --@ {line}: ")) && why.contains(problem), "{why}");
        assert_eq!((place.command, ran.ledger.attempts.errored), (1, 1));
        // The server committed it, and its operations are unknown.
        assert_eq!(history.dropped(), u64::from(!why.contains("undefined")), "{why}");
    }
}

#[test]
fn a_recorded_script_is_one_transaction() {
    let says = |ran: &RunResult, words: &str| {
        let (_, AbortCause::Annotation(why)) = ran.abort() else { panic!("{:?}", ran.events) };
        assert!(why.contains(words), "{why}");
    };
    let twice = format!("{ALONE}{ALONE}");
    for script in [&twice, &format!("{REGISTER}{REGISTER}"), &format!("{ROLLBACK}{REGISTER}")] {
        let (ran, history) = Case::new(script).run_recorded();
        says(&ran, "must be one transaction");
        assert_eq!(history.transactions().len(), 1);
    }
    let pipeline = twice.replace("\\set id random(1, 3)", "\\syncpipeline");
    let pipeline = format!("\\set id 1\n\\startpipeline\n{pipeline}\\endpipeline\n");
    let error = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    for faults in [Faults::none(), Faults::none().and(On::Update, When::Nth(0, 0), error)] {
        let (ran, _) = Case::new(&pipeline).protocol(Protocol::Extended).faults(faults).run_recorded();
        says(&ran, "must be one transaction");
    }
    let savepoint = REGISTER.replace("BEGIN;", "BEGIN;\nSAVEPOINT s;");
    let savepoint = savepoint.replace("END;", "ROLLBACK TO SAVEPOINT s;\nEND;");
    says(&Case::new(&savepoint).run_recorded().0, "ROLLBACK TO");
}

#[test]
fn scripts_without_lines_are_not_recorded() {
    let mut case = Case::new(REGISTER).transactions(50);
    case.scripts.push((crate::harness::TRANSFER.to_owned(), 1));
    let (ran, history) = case.run_recorded();
    let recorded = ran.outcome.scripts[0].ledger.attempts.committed;
    assert!((10..40).contains(&recorded));
    assert_eq!(
        (history.transactions().len() as u64, history.tables()),
        (recorded, &["registers".to_owned()][..])
    );
}

#[test]
fn tables_are_numbered_over_all_scripts() {
    let script =
        |table: &str| format!("--@ write {table} key=1 value=:attempt_id\nUPDATE {table} SET v = 1;\n");
    let mut case = Case::new(&script("a")).transactions(20);
    case.scripts.push((script("b"), 1));
    let (_, history) = case.run_recorded();
    assert_eq!(history.tables(), ["a", "b"]);
    let tables: BTreeSet<String> =
        operations(&history).iter().map(|operation| operation[..3].to_owned()).collect();
    assert_eq!(tables, BTreeSet::from(["w a".to_owned(), "w b".to_owned()]));
}

#[test]
fn where_a_recording_is_kept_makes_no_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history");
    let run = |storage| {
        let mut case = Case::new(REGISTER).clients(2).transactions(30);
        case.storage = Some(storage);
        let mut stage = case.stage();
        let (first, second) =
            (stage.run(StopCondition::Transactions(20)), stage.run(StopCondition::Transactions(30)));
        printed(&stage.end_recorded(&[&first, &second]).1)
    };
    let memory = run(Storage::default());
    assert_eq!(memory.lines().count(), 100);
    assert_eq!(run(Storage::Memory(0)), memory);
    assert_eq!(run(Storage::Memory(1000)), memory);
    assert_eq!(run(Storage::File(file.clone())), memory);
    let history = read(&*std::fs::read(file).expect("a file")).expect("a recording");
    assert_eq!(printed(&history), memory);
}

/// Checks the properties of every recording without missing transactions.
fn check(ran: &RunResult, history: &History) {
    check_writes(&ran.truth, history);
    check_instants(&ran.truth, history);
    let committed =
        outcomes(history).iter().filter(|outcome| **outcome == TransactionOutcome::Committed).count() as u64;
    assert_eq!(committed, ran.ledger.transactions.committed, "{}", printed(history));
    let unknown =
        outcomes(history).iter().filter(|outcome| **outcome == TransactionOutcome::Unknown).count() as u64;
    assert!(unknown <= ran.ledger.attempts.ambiguous);
    assert!(history.transactions().len() as u64 <= ran.ledger.attempts.started);
    assert!(history.dropped() <= ran.ledger.attempts.ambiguous);
}

/// Checks that the transactions committed by the server were recorded as committed or unknown, and
/// no others as committed.
fn check_writes(truth: &Truth, history: &History) {
    let mut recorded: BTreeMap<Written, TransactionOutcome> = BTreeMap::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        for operation in history.operations(index) {
            let Operation::Write { key, version } = operation else { continue };
            let writer = version.value.expect("a writer");
            assert_eq!(writer.cast_unsigned(), transaction.id);
            let written = Written { id: key.id, version: version.counter.expect("a version"), writer };
            recorded.insert(written, transaction.outcome);
        }
    }
    let written: BTreeSet<Written> = truth.writes.iter().copied().collect();
    // The transactions with missing operations.
    let mut missing = BTreeSet::new();
    for written in &written {
        match recorded.get(written) {
            Some(TransactionOutcome::Committed | TransactionOutcome::Unknown) => {}
            Some(TransactionOutcome::Aborted) => {
                panic!("{written:?} counts as aborted\n{}", printed(history))
            }
            None => {
                missing.insert(written.writer);
            }
        }
    }
    assert!(missing.len() as u64 <= history.dropped(), "{missing:?} are missing\n{}", printed(history));
    for (record, outcome) in &recorded {
        assert!(
            *outcome != TransactionOutcome::Committed || written.contains(record),
            "{record:?} isn't committed"
        );
    }
}

/// Checks that a transaction's instants enclose the server's work for it, and that those of a
/// client follow each other.
fn check_instants(truth: &Truth, history: &History) {
    let mut last: BTreeMap<u32, Transaction> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for transaction in history.transactions() {
        let Transaction { id, client, begin, end, outcome, .. } = *transaction;
        assert!(begin <= end && ids.insert(id), "{transaction:?}");
        if let Some(before) = last.insert(client, *transaction) {
            let done = if before.outcome == TransactionOutcome::Unknown { before.begin } else { before.end };
            assert!(done <= begin && before.id < id, "{before:?} {transaction:?}");
        }
        let mine = format!(" writer = {id} ");
        for statement in truth.statements.get(client as usize).into_iter().flatten() {
            if statement.sql.contains(&mine) {
                assert!(begin <= statement.began.0);
                assert!(outcome == TransactionOutcome::Aborted || statement.ended.0 <= end);
            }
        }
    }
}

/// Scripts that write registers, one transaction each, and the protocols in which they are
/// possible.
const SCRIPTS: Scripts = &[
    (REGISTER, &Protocol::ALL),
    (ALONE, &Protocol::ALL),
    (AT_ONCE, &[Protocol::Simple]),
    (PIPELINE, EXTENDED),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_recording_is_right_under_any_faults(case in cases(SCRIPTS)) {
        let case = case.rules(Rules::Isobench);
        let (ran, history) = case.run_recorded();
        check(&ran, &history);
        let observed = ran.aborts().iter().any(|(_, cause)| matches!(cause, AbortCause::Annotation(_)));
        prop_assert!(!observed);
    }

    /// Includes scripts that roll back, and clients that continue after errors.
    #[test]
    fn what_is_rolled_back_was_never_written(case in cases(&[(ROLLBACK, &Protocol::ALL)])) {
        let (ran, history) = case.rules(Rules::Isobench).on_error(OnError::Continue).run_recorded();
        check_writes(&ran.truth, &history);
        check_instants(&ran.truth, &history);
    }
}

#[test]
fn tries_without_end_are_all_recorded() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let policy = RetryPolicy { max_tries: NonZeroU32::new(9), ..RetryPolicy::UNLIMITED };
    let faults = Faults::none().and(On::Commit, When::First(8), conflict);
    let (ran, history) = Case::new(REGISTER).retry(policy).faults(faults).run_recorded();
    assert_eq!(history.transactions().len(), 9);
    check(&ran, &history);
    let keys: BTreeSet<String> = operations(&history).iter().map(|text| text[2..13].to_owned()).collect();
    assert_eq!(keys.len(), 1, "a retry is the same transaction again");
}
