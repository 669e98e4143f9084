//! Retries that start after a savepoint, as CockroachDB's retry protocol requires.

use isobench_isolation::history::{TransactionOutcome, text};
use isobench_pgwire::SqlState;
use isobench_runner::{Protocol, Restart, RetryPolicy, Rules, Urgency};
use isobench_stats::Attempts;
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};
use proptest::prelude::*;

use crate::chaos::{EXTENDED, Scripts, cases};
use crate::harness::{Case, RunResult, backoff, millis, ms, tries};

/// Commands: 0 `\set`, 1 BEGIN, 2 SAVEPOINT, 3 `\set`, 4 UPDATE, 5 INSERT, 6 RELEASE, 7 COMMIT.
const PROTOCOL: &str = "\\set v random(1, 1000000)
BEGIN;
SAVEPOINT cockroach_restart;
\\set w random(1, 1000000) + :v
UPDATE t SET v = :v, w = :w, attempt = :attempt;
INSERT INTO h VALUES (:v);
RELEASE SAVEPOINT cockroach_restart;
COMMIT;
";

/// The same in a pipeline.
const PIPELINE: &str = "BEGIN;
SAVEPOINT s;
\\startpipeline
UPDATE t SET v = 1;
\\syncpipeline
INSERT INTO h VALUES (1);
RELEASE s;
COMMIT;
\\endpipeline
";

/// An observed row. Commands: 0 BEGIN, 1 SAVEPOINT, 2 UPDATE, 3 RELEASE, 4 COMMIT.
const RECORDED: &str = "BEGIN;
SAVEPOINT s;
--@ write registers key=1 version=$1 value=:attempt_id
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = 1 RETURNING version;
RELEASE s;
COMMIT;
";

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);

fn savepoint(policy: RetryPolicy) -> RetryPolicy {
    RetryPolicy { restart: Restart::Savepoint, ..policy }
}

fn case(script: &str) -> Case {
    let mut case = Case::new(script).retry(savepoint(RetryPolicy::UNLIMITED));
    case.settings.release_commits = true;
    case
}

/// The first words of the first client's statements.
fn words(ran: &RunResult) -> Vec<String> {
    let word = |text: &&str| {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if text.starts_with("ROLLBACK") { words.join(" ") } else { words[0].to_owned() }
    };
    ran.truth.texts(0).iter().map(word).collect()
}

#[test]
fn a_conflict_after_the_savepoint_goes_back_to_it() {
    for protocol in Protocol::ALL {
        for (on, before) in [(On::Update, 0), (On::Insert, 1), (On::Release, 2)] {
            let faults = Faults::none().and(on, When::Nth(0, 0), CONFLICT);
            let ran = case(PROTOCOL).protocol(protocol).faults(faults).run();
            let all = ["UPDATE", "INSERT", "RELEASE"];
            let mut expected = vec!["BEGIN", "SAVEPOINT"];
            expected.extend(&all[..=before]);
            expected.push("ROLLBACK TO SAVEPOINT cockroach_restart");
            expected.extend(all);
            expected.push("COMMIT");
            assert_eq!(words(&ran), expected, "{on:?}");
            let attempts = Attempts { started: 2, retried: 1, committed: 1, ..Attempts::default() };
            assert_eq!((ran.ledger.attempts, ran.ledger.retries), (attempts, 1));
            assert_eq!(ran.truth.blocks, 1);
            assert_eq!(ran.truth.committed_rows, 1);
        }
    }
}

#[test]
fn a_further_attempt_is_the_same_again() {
    let faults = Faults::none().and(On::Insert, When::First(3), CONFLICT);
    let ran = case(PROTOCOL).faults(faults).transactions(2).run();
    let updates: Vec<&str> =
        ran.truth.texts(0).into_iter().filter(|text| text.starts_with("UPDATE")).collect();
    assert_eq!(updates.len(), 5);
    for (number, update) in updates[..4].iter().enumerate() {
        let without = |text: &str| text.split(", attempt").next().map(str::to_owned);
        assert_eq!(without(update), without(updates[0]));
        assert!(update.ends_with(&format!("attempt = {}", number + 1)), "{update}");
    }
    assert!(updates[4].ends_with("attempt = 1"));
    // The random numbers continue as if nothing had failed.
    let smooth = case(PROTOCOL).transactions(2).run();
    assert_eq!(smooth.truth.texts(0).last(), ran.truth.texts(0).last());
    assert_eq!(smooth.truth.texts(0)[8], updates[4]);
}

#[test]
fn a_conflict_elsewhere_restarts_at_the_first_command() {
    for (on, nth) in [(On::Begin, 0), (On::Statement, 1), (On::Commit, 0)] {
        let mut case = case(PROTOCOL).faults(Faults::none().and(on, When::Nth(0, nth), CONFLICT));
        // In PostgreSQL RELEASE isn't a commit.
        case.settings.release_commits = false;
        let ran = case.run();
        let words = words(&ran);
        assert_eq!(words.iter().filter(|word| *word == "BEGIN").count(), 2, "{words:?}");
        assert!(!words.iter().any(|word| word.starts_with("ROLLBACK TO")), "{words:?}");
        assert_eq!((ran.ledger.attempts.committed, ran.ledger.attempts.retried), (1, 1));
    }
}

#[test]
fn a_refused_rollback_to_restarts_at_the_first_command() {
    for fault in [Fault::Error(SqlState::INTERNAL_ERROR), CONFLICT] {
        let faults = Faults::none().and(On::Update, When::Nth(0, 0), CONFLICT).and(
            On::RollbackTo,
            When::Nth(0, 0),
            fault,
        );
        let words = words(&case(PROTOCOL).faults(faults).run());
        let back = ["UPDATE", "ROLLBACK TO SAVEPOINT cockroach_restart", "ROLLBACK", "BEGIN"];
        assert_eq!(words[2..6], back);
    }
}

#[test]
fn other_policies_and_errors_leave_the_block() {
    let faults = |fault| Faults::none().and(On::Update, When::Nth(0, 0), fault);
    let plain = case(PROTOCOL).retry(RetryPolicy::UNLIMITED).faults(faults(CONFLICT)).run();
    assert_eq!(words(&plain)[3], "ROLLBACK");
    let given_up = case(PROTOCOL).retry(savepoint(tries(1))).faults(faults(CONFLICT)).run();
    assert_eq!((words(&given_up).len(), given_up.ledger.attempts.given_up), (4, 1));
    let error = case(PROTOCOL).faults(faults(Fault::Error(SqlState::UNDEFINED_TABLE))).run();
    assert_eq!(error.ledger.attempts.errored, 1);
}

#[test]
fn the_last_try_rolls_back_as_a_whole() {
    let faults = Faults::none().and(On::Update, When::First(9), CONFLICT);
    let ran = case(PROTOCOL).retry(savepoint(tries(3))).faults(faults).run();
    assert_eq!((ran.ledger.attempts.started, ran.ledger.attempts.given_up), (3, 1));
    assert_eq!(words(&ran).last().map(String::as_str), Some("ROLLBACK"));
}

#[test]
fn the_block_stays_open_in_the_backoff_and_is_left_at_the_end() {
    let policy = || savepoint(backoff("fixed:50ms"));
    let faults = || Faults::none().and(On::Update, When::First(1), CONFLICT);
    let ran = case(PROTOCOL).retry(policy()).faults(faults()).run();
    assert_eq!(ran.ledger.time.backoff, ms(50));
    assert_eq!(ran.ledger.attempts.committed, 1);
    let mut stage = case(PROTOCOL).retry(policy()).faults(faults()).time(millis(20)).stage();
    let (stop, again) = (stage.case.stop, isobench_runner::StopCondition::Transactions(1));
    let cut = stage.run(stop);
    assert_eq!((cut.ledger.transactions.cut_off, cut.ledger.attempts.retried), (1, 1));
    assert_eq!(words(&cut).last().map(String::as_str), Some("ROLLBACK"));
    // The session can be used for another run, which starts at the first command.
    let next = stage.run(again);
    assert_eq!(next.ledger.attempts.committed, 1);
    assert_eq!(words(&next)[5..7], ["BEGIN", "SAVEPOINT"]);
    stage.end(&[&cut, &next]);
    let now = case(PROTOCOL).retry(policy()).faults(faults()).interrupt(millis(20), Urgency::Now).run();
    assert_eq!(now.ledger.transactions.cut_off, 1);
}

#[test]
fn what_is_lost_after_release_is_ambiguous() {
    let lost = Fault::Lost(Loss::Closed);
    for (on, fault, ambiguous) in [
        (On::Release, lost, true),
        (On::Release, Fault::LostAfter(Loss::Reset), true),
        (On::Release, Fault::LostWhenIdle(millis(1), Loss::Closed), true),
        (On::Commit, lost, true),
        (On::Insert, lost, false),
    ] {
        let script = PROTOCOL.replace("COMMIT;", "\\sleep 5 ms\nCOMMIT;");
        let ran = case(&script).faults(Faults::none().and(on, When::Nth(0, 0), fault)).run();
        assert_eq!(ran.ledger.attempts.ambiguous, u64::from(ambiguous), "{on:?} {fault:?}");
    }
}

#[test]
fn every_attempt_is_recorded() {
    let faults = Faults::none().and(On::Release, When::First(2), CONFLICT);
    let (ran, history) = case(RECORDED).faults(faults).run_recorded();
    assert_eq!(ran.truth.blocks, 1);
    let outcomes: Vec<TransactionOutcome> = history.transactions().iter().map(|one| one.outcome).collect();
    assert_eq!(
        outcomes,
        [TransactionOutcome::Aborted, TransactionOutcome::Aborted, TransactionOutcome::Committed]
    );
    let reported = text::print(&history);
    for writer in 1..=3 {
        assert!(reported.contains(&format!("w registers 1 = v1/{writer}\n")), "{reported}");
    }
}

#[test]
fn operations_before_a_savepoint_rule_out_retries_from_it() {
    let script = RECORDED
        .replace("BEGIN;\nSAVEPOINT s;\n", "BEGIN;\n")
        .replace("RELEASE", "SAVEPOINT s;\nSELECT 1;\nRELEASE");
    let faults = Faults::none().and(On::Select, When::Nth(0, 0), CONFLICT);
    let ran = case(&script).faults(faults).run();
    assert_eq!(ran.truth.blocks, 2);
}

#[test]
fn the_first_savepoint_of_the_block_counts() {
    let script = "BEGIN\\; SAVEPOINT A;
SAVEPOINT b;
UPDATE t SET v = 1;
RELEASE b;
INSERT INTO h VALUES (1);
COMMIT;
";
    let faults = Faults::none().and(On::Insert, When::Nth(0, 0), CONFLICT);
    let mut case = case(script).faults(faults);
    case.settings.release_commits = false;
    let words = words(&case.run());
    assert_eq!(words[6..9], ["ROLLBACK TO SAVEPOINT a", "SAVEPOINT", "UPDATE"]);
}

#[test]
fn a_pipeline_after_the_savepoint_is_repeated() {
    for protocol in EXTENDED {
        let faults = Faults::none().and(On::Insert, When::Nth(0, 0), CONFLICT);
        let ran = case(PIPELINE).protocol(*protocol).faults(faults).run();
        assert_eq!((ran.truth.blocks, ran.truth.committed_rows), (1, 1));
        assert!(words(&ran).contains(&"ROLLBACK TO SAVEPOINT s".to_owned()));
    }
}

/// Scripts with one INSERT, and with a register.
const SCRIPTS: Scripts = &[(PROTOCOL, &Protocol::ALL), (PIPELINE, EXTENDED)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any faults, policies and ends; `harness.rs` compares the ledger with the server's rows.
    #[test]
    fn whatever_happens_the_account_balances(
        case in cases(SCRIPTS),
        commits in any::<bool>(),
        refused in select_chance(),
    ) {
        let mut case = case.rules(Rules::Isobench);
        case.spec.retry = savepoint(case.spec.retry);
        case.settings.release_commits = commits;
        case.settings.faults = case.settings.faults
            .and(On::RollbackTo, When::Chance(refused), Fault::Error(SqlState::INTERNAL_ERROR))
            .and(On::Release, When::Chance(0.2), CONFLICT);
        case.run();
    }
}

fn select_chance() -> impl Strategy<Value = f64> {
    proptest::sample::select(vec![0.0, 0.1, 0.5])
}
