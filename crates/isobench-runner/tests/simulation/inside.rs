//! Errors swallowed by a command's own SQL, and retries inside the server, as rows report them.

use isobench_isolation::History;
use isobench_isolation::history::{TransactionOutcome, text};
use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, Protocol, Rules, TransactionEnd};
use isobench_stats::{Attempts, Transactions};
use isobench_testkit::simulated::{Answer, Fault, Faults, On, When};
use proptest::prelude::*;

use crate::chaos::{EXTENDED, Scripts, cases};
use crate::harness::{Case, RunResult, at, millis, ms, tries};

/// One call in a block. Commands: 0 BEGIN, 1 SELECT, 2 END.
const SWALLOWS: &str = "BEGIN;
--@ swallowed sqlstate=$1
SELECT swallowed;
END;
";

/// A call that commits by itself.
const INSIDE: &str = "--@ inside retries=$1 wasted=$2
SELECT inside;
";

/// Both in a pipeline, with a row in the same transaction. The server's answer decides which.
const PIPELINE: &str = "\\startpipeline
BEGIN;
--@ inside retries=$1 wasted=$2
SELECT inside;
\\sleep 1 ms
\\syncpipeline
--@ swallowed sqlstate=$1
SELECT swallowed;
END;
\\endpipeline
";

/// Draws whether the call swallows an error, and which one. Commands: 0 `\set`, 1 BEGIN, 2 SELECT,
/// 3 SELECT, 4 INSERT, 5 END.
const DRAWN: &str = "\\set n random(1, 4)
BEGIN;
--@ inside retries=$1 wasted=$2
SELECT inside :n;
--@ swallowed sqlstate=$1
SELECT swallowed :n;
INSERT INTO h VALUES (1);
END;
";

fn answered(case: Case, to: &'static str, fields: &[Option<&'static str>]) -> Case {
    let mut case = case;
    let columns = ["a", "b", "c", "d"];
    let row: Vec<_> = columns.into_iter().zip(fields.iter().copied()).collect();
    case.settings.answers.push((to, Answer::row(&row)));
    case
}

fn swallowing(code: Option<&'static str>) -> Case {
    answered(Case::new(SWALLOWS), "swallowed", &[code])
}

/// Conflicts by code, command, reason and number.
fn conflicts(ran: &RunResult) -> Vec<(String, usize, String, u64)> {
    let conflicts = ran.outcome.conflicts.iter();
    conflicts.map(|one| (one.sqlstate.to_string(), one.command, one.reason.to_string(), one.count)).collect()
}

#[test]
fn what_is_swallowed_is_no_throughput() {
    for (code, conflict) in [("40001", true), ("40P01", true), ("23505", false), ("P0001", false)] {
        for protocol in Protocol::ALL {
            let ran = swallowing(Some(code)).protocol(protocol).series(millis(1)).transactions(3).run();
            let (attempts, transactions) = (ran.ledger.attempts, ran.ledger.transactions);
            assert_eq!(attempts, Attempts { started: 3, swallowed: 3, ..Attempts::default() });
            assert_eq!(transactions, Transactions { total: 3, swallowed: 3, ..Transactions::default() });
            assert!(ran.ledger.time.wasted >= ms(9) && ran.ledger.time.useful == 0);
            assert_eq!((ran.ledger.conflicts, ran.ledger.retries), (3 * u64::from(conflict), 0));
            assert!(ran.outcome.latency().is_empty());
            let series = ran.outcome.series.as_ref().expect("a series").total();
            assert_eq!((series.committed, series.conflicts), (0, ran.ledger.conflicts));
            assert_eq!(ran.count(TransactionEnd::Swallowed), 3);
            let caught = (code.to_owned(), 1, "caught by the script's own SQL".to_owned(), 3);
            assert_eq!(conflicts(&ran), if conflict { vec![caught] } else { Vec::new() });
        }
    }
}

#[test]
fn null_is_no_error() {
    let ran = swallowing(None).transactions(3).run();
    assert_eq!((ran.ledger.transactions.committed, ran.ledger.transactions.swallowed), (3, 0));
    assert_eq!((ran.ledger.conflicts, ran.ledger.time.wasted), (0, 0));
}

#[test]
fn an_attempt_that_fails_after_it_has_swallowed_is_a_failed_one() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let ran =
        swallowing(Some("40P01")).faults(Faults::none().and(On::Commit, When::Nth(0, 0), conflict)).run();
    let attempts = ran.ledger.attempts;
    assert_eq!((attempts.started, attempts.retried, attempts.swallowed), (2, 1, 1));
    assert_eq!(ran.ledger.conflicts, 2);
}

#[test]
fn retries_inside_are_attempts() {
    for protocol in Protocol::ALL {
        let case = answered(Case::new(INSIDE), "inside", &[Some("3"), Some("250")]);
        let ran = case.protocol(protocol).series(millis(1)).transactions(2).run();
        let expected = Attempts { started: 8, retried: 6, committed: 2, ..Attempts::default() };
        assert_eq!(ran.ledger.attempts, expected);
        assert_eq!((ran.ledger.conflicts, ran.ledger.retries), (6, 6));
        assert_eq!(ran.ledger.transactions.committed, 2);
        assert_eq!(ran.ledger.time.wasted, 500_000);
        // Preparing takes no time in this simulation.
        assert_eq!(ran.ledger.time.useful, ms(2) - 500_000);
        let series = ran.outcome.series.as_ref().expect("a series").total();
        assert_eq!((series.attempts, series.conflicts, series.committed), (8, 6, 2));
        let reason = "retried inside the server".to_owned();
        assert_eq!(conflicts(&ran), [("40001".to_owned(), 0, reason, 6)]);
        // pgbench's count has only the client's retries.
        assert_eq!(ran.outcome.scripts[0].retries, 0);
    }
}

#[test]
fn no_more_is_wasted_than_the_attempt_took() {
    let case = answered(Case::new(INSIDE), "inside", &[Some("1"), Some("9223372036854775807")]);
    let ran = case.run();
    assert_eq!((ran.ledger.time.useful, ran.ledger.time.wasted), (0, ms(1)));
    let script = INSIDE.replace(" wasted=$2", "");
    let ran = answered(Case::new(&script), "inside", &[Some("1")]).run();
    assert_eq!((ran.ledger.time.useful, ran.ledger.time.wasted, ran.ledger.retries), (ms(1), 0, 1));
}

#[test]
fn retries_inside_count_when_the_attempt_fails_later() {
    let script = format!("BEGIN;\n{INSIDE}END;\n");
    let case = answered(Case::new(&script), "inside", &[Some("2"), Some("100")]).retry(tries(2));
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let ran = case.faults(Faults::none().and(On::Commit, When::First(2), conflict)).run();
    let expected = Attempts { started: 6, retried: 5, given_up: 1, ..Attempts::default() };
    assert_eq!(ran.ledger.attempts, expected);
    assert_eq!((ran.ledger.conflicts, ran.ledger.retries), (6, 5));
    assert_eq!((ran.ledger.time.useful, ran.ledger.time.wasted), (0, ms(6)));
}

#[test]
fn a_pipeline_has_them_too() {
    for protocol in EXTENDED {
        let case = answered(Case::new(PIPELINE), "inside", &[Some("2"), Some("100")]);
        let ran = answered(case, "swallowed", &[Some("40001")]).protocol(*protocol).transactions(2).run();
        let expected = Attempts { started: 6, retried: 4, swallowed: 2, ..Attempts::default() };
        assert_eq!(ran.ledger.attempts, expected);
        let (inside, caught) = ("retried inside the server", "caught by the script's own SQL");
        let reported: Vec<_> = conflicts(&ran).into_iter().map(|one| (one.1, one.2, one.3)).collect();
        assert_eq!(reported, [(2, inside.to_owned(), 4), (5, caught.to_owned(), 2)]);
    }
}

#[test]
fn only_the_observed_statement_of_a_request_counts() {
    let script = "--@ inside retries=$1 wasted=$2\nBEGIN\\; SELECT inside\\; COMMIT;\n";
    let ran = answered(Case::new(script), "inside", &[Some("1"), Some("5")]).run();
    assert_eq!((ran.ledger.attempts.started, ran.ledger.time.wasted), (2, 5_000));
}

#[test]
fn every_row_is_an_operation() {
    let mut case = Case::new("--@ inside retries=$1\nSELECT inside;\n");
    case.settings.answers.push(("inside", Answer::column("a", &["1", "0", "2"])));
    assert_eq!(case.run().ledger.retries, 3);
    let mut case = swallowing(None);
    case.settings.answers = vec![("swallowed", Answer { columns: vec!["a"], rows: Vec::new() })];
    assert_eq!(case.run().ledger.transactions.committed, 1, "no row tells nothing");
}

#[test]
fn a_result_that_is_not_as_its_line_says_ends_the_client() {
    let inside = [
        (vec![None, Some("1")], "the number of retries is NULL"),
        (vec![Some("many"), Some("1")], "the number of retries is \"many\", which is no integer from 0 to"),
        (vec![Some("-1"), Some("1")], "the number of retries is \"-1\""),
        (vec![Some("4294967296"), Some("1")], "which is no integer from 0 to 4294967295"),
        (vec![Some("1"), Some("0.5")], "the wasted time is \"0.5\""),
        (vec![Some("1"), None], "the wasted time is NULL"),
        (vec![Some("1")], "the wasted time is to be column 2, and the result has 1"),
    ];
    for (row, why) in inside {
        says(&answered(Case::new(INSIDE), "inside", &row).run(), 0, "test.sql:1: --@ inside retries=$1", why);
    }
    for (code, why) in [("4000", "which is no SQLSTATE"), ("00000", "NULL says that there was none")] {
        says(&swallowing(Some(code)).run(), 1, "test.sql:2: --@ swallowed sqlstate=$1: ", why);
    }
}

/// Asserts that the client has ended at this command because of the line and reason.
fn says(ran: &RunResult, command: usize, line: &str, why: &str) {
    let (place, AbortCause::Annotation(reported)) = ran.abort() else { panic!("{:?}", ran.events) };
    assert_eq!(place, at(0, 0, command));
    assert!(reported.starts_with(line) && reported.contains(why), "{reported}");
    assert_eq!((ran.ledger.attempts.errored, ran.ledger.attempts.started), (1, 1));
}

/// A command that also reads a row and writes one. Another row is read before.
const RECORDED: &str = "BEGIN;
--@ read registers key=1 version=$1 value=$2
SELECT version, writer FROM registers WHERE id = 1;
--@ swallowed sqlstate=$1
--@ inside retries=$2
--@ read registers key=2 version=$3
--@ write registers key=2 value=:attempt_id
--@ read-group registers group=7 key=$2
--@ holds sum value=$4
SELECT swallowed;
END;
";

#[test]
fn what_was_swallowed_was_never_done() {
    let run = |row: &[Option<&'static str>]| answered(Case::new(RECORDED), "swallowed", row).run_recorded();
    let (ran, history) = run(&[Some("40001"), None, None, None]);
    assert_eq!(ran.ledger.attempts.swallowed, 1);
    assert_eq!(printed(&history), "T1 client=0 0..4000000: r registers 1 = v0/0\n");
    assert_eq!(ran.outcome.scripts[0].assertions[0].checked, 0);
    let (ran, history) = run(&[None, Some("1"), Some("5"), Some("t")]);
    assert_eq!(printed(&history).matches("registers").count(), 4, "{}", printed(&history));
    assert_eq!((ran.ledger.attempts.committed, ran.ledger.attempts.retried), (1, 1));
    assert_eq!(ran.outcome.scripts[0].assertions[0].checked, 1);
}

#[test]
fn lines_without_tables_make_no_history() {
    let (_, history) = swallowing(None).run_recorded();
    assert!(history.transactions().is_empty() && history.tables().is_empty());
    let (_, history) = swallowing(Some("40001")).run_recorded();
    assert!(history.transactions().iter().all(|one| one.outcome == TransactionOutcome::Committed));
}

fn printed(history: &History) -> String {
    text::print(history)
}

/// Scripts with one INSERT at most, and the protocols in which they are possible.
const SCRIPTS: Scripts = &[(DRAWN, &Protocol::ALL), (PIPELINE, EXTENDED)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any faults, policies and ends; `harness.rs` asserts that the ledger balances.
    #[test]
    fn whatever_happens_the_account_balances(case in cases(SCRIPTS), recorded in any::<bool>()) {
        let drawn: [(&str, &[Option<&str>]); 6] = [
            ("swallowed 1", &[Some("40001")]),
            ("swallowed 2", &[Some("23505")]),
            ("swallowed", &[None]),
            ("inside 1", &[Some("0"), Some("0")]),
            ("inside 2", &[Some("7"), Some("1000000")]),
            ("inside", &[Some("2"), Some("100")]),
        ];
        let case = drawn.into_iter().fold(case.rules(Rules::Isobench), |case, (to, row)| answered(case, to, row));
        let ran = if recorded { case.run_recorded().0 } else { case.run() };
        let counts = ran.ledger;
        let retried = ran.outcome.conflicts.iter().filter(|one| one.reason.starts_with("retried"));
        let inside: u64 = retried.map(|one| one.count).sum();
        prop_assert!(inside <= counts.attempts.retried && inside <= counts.retries);
        let lost = ran.aborts().iter().any(|(_, cause)| matches!(cause, AbortCause::Annotation(_)));
        prop_assert!(!lost);
    }
}
