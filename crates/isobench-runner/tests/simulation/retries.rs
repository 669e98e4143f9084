//! Retries: the same transaction again, as often and with such delays as the policy says.

use isobench_pgwire::SqlState;
use isobench_runner::Protocol;
use isobench_stats::{Attempts, Transactions};
use isobench_testkit::simulated::{Answer, Fault, Faults, On, When};

use crate::harness::{Case, FURTHER, TRANSFER, backoff, millis, ms, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);

fn first(on: On, count: u64) -> Faults {
    Faults::none().and(on, When::First(count), CONFLICT)
}

#[test]
fn a_retry_repeats_the_same_values() {
    for protocol in Protocol::ALL {
        for on in [On::Begin, On::Update, On::Insert, On::Commit] {
            let ran = Case::new(TRANSFER).protocol(protocol).faults(first(on, 3)).transactions(2).run();
            let inserts = ran.truth.matching(0, "UPDATE");
            let values: std::collections::BTreeSet<&str> = inserts.iter().copied().collect();
            assert_eq!(values.len(), 2, "{protocol:?} {on:?}: {inserts:?}");
            assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (3, 2));
        }
    }
}

#[test]
fn variables_are_restored_before_a_retry() {
    let script = "BEGIN;\n\\set n :n + 1\nINSERT INTO h VALUES (:n);\nEND;\n";
    let mut case = Case::new(script).faults(first(On::Commit, 2)).transactions(2);
    case.variables = vec![("n", 0)];
    let ran = case.run();
    let expected = [1, 1, 1, 2].map(|n| format!("INSERT INTO h VALUES ({n})"));
    assert_eq!(ran.truth.matching(0, "INSERT"), expected);
}

#[test]
fn a_result_stored_before_the_conflict_is_forgotten() {
    let script = "BEGIN;\nSELECT :v;\nSELECT answer AS v \\gset\nUPDATE t SET v = 1;\nEND;\n";
    let mut case = Case::new(script).faults(first(On::Update, 1)).transactions(2);
    case.settings.answers = vec![("answer", Answer::column("v", &["42"]))];
    let ran = case.run();
    // The variable is unset in both attempts of the first transaction, and kept from the first to
    // the second transaction.
    assert_eq!(
        ran.truth.matching(0, "SELECT "),
        [
            "SELECT :v",
            "SELECT answer AS v",
            "SELECT :v",
            "SELECT answer AS v",
            "SELECT 42",
            "SELECT answer AS v"
        ]
    );
}

#[test]
fn tries_are_limited() {
    for (most, conflicts, committed) in [(1, 1, 0), (3, 2, 1), (3, 3, 0), (0, 50, 1)] {
        let ran = Case::new(TRANSFER).retry(tries(most)).faults(first(On::Insert, conflicts)).run();
        let given_up = 1 - committed;
        assert_eq!(
            ran.ledger.attempts,
            Attempts {
                started: conflicts + committed,
                committed,
                retried: conflicts - given_up,
                given_up,
                ..Attempts::default()
            }
        );
        assert_eq!((ran.ledger.conflicts, ran.outcome.aborted), (conflicts, 0));
    }
}

#[test]
fn an_error_that_the_caller_names_is_retried_and_is_no_conflict() {
    for (most, errors, committed) in [(0, 3, 1), (3, 3, 0), (1, 1, 0)] {
        let faults = Faults::none().and(On::Insert, When::First(errors), Fault::Error(FURTHER));
        let ran = Case::new(TRANSFER).retry(tries(most)).faults(faults).run();
        let given_up = 1 - committed;
        let attempts = Attempts {
            started: errors + committed,
            committed,
            retried: errors - given_up,
            given_up,
            ..Attempts::default()
        };
        assert_eq!(ran.ledger.attempts, attempts);
        assert_eq!((ran.ledger.conflicts, ran.ledger.further_errors, ran.outcome.aborted), (0, errors, 0));
        assert_eq!((ran.ledger.retries, ran.ledger.time.wasted), (errors - given_up, ms(4) * errors));
        let [counted] = &ran.outcome.further_errors[..] else { panic!("{:?}", ran.outcome.further_errors) };
        assert_eq!((counted.sqlstate, counted.count, &*counted.reason), (FURTHER, errors, "asked for"));
        assert!(ran.outcome.conflicts.is_empty());
        let script = &ran.outcome.scripts[0];
        assert_eq!((script.further_failures, script.deadlock_failures), (given_up, 0));
    }
}

#[test]
fn the_latency_limit_ends_retries() {
    // A failed attempt takes 4 ms; the third ends at 12 ms, beyond the limit.
    let ran = Case::new(TRANSFER).limit(millis(10)).faults(first(On::Insert, 100)).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 3, retried: 2, given_up: 1, ..Attempts::default() });
    assert_eq!(ran.outcome.elapsed, millis(12));
}

#[test]
fn a_fixed_backoff_is_kept_exactly() {
    let ran = Case::new(TRANSFER).retry(backoff("fixed:7ms")).faults(first(On::Commit, 2)).run();
    let time = ran.ledger.time;
    assert_eq!((time.useful, time.wasted, time.backoff), (ms(4), ms(8), ms(14)));
    assert_eq!((ran.outcome.elapsed, ran.outcome.latency().max_ms()), (millis(26), Some(26.0)));
}

#[test]
fn an_exponential_backoff_grows_to_its_maximum() {
    let policy = backoff("exponential:base=10ms,factor=2,max=35ms,jitter=none");
    let ran = Case::new(TRANSFER).retry(policy).faults(first(On::Commit, 4)).run();
    let begins: Vec<u64> = ran.truth.statements[0]
        .iter()
        .filter(|statement| statement.sql == "BEGIN")
        .map(|statement| statement.began.0 / ms(1))
        .collect();
    assert_eq!(begins, [0, 14, 38, 77, 116]);
    assert_eq!(ran.ledger.time.backoff, ms(10 + 20 + 35 + 35));
}

#[test]
fn a_jittered_backoff_stays_below_its_maximum() {
    let policy = backoff("exponential:base=10ms,factor=2,max=10ms,jitter=full");
    let ran = Case::new(TRANSFER).retry(policy).faults(first(On::Commit, 40)).run();
    let mean = ran.ledger.time.backoff / 40;
    assert!((ms(3)..ms(7)).contains(&mean), "mean backoff {mean} ns");
}

#[test]
fn the_backoff_of_the_next_transaction_starts_afresh() {
    let policy = backoff("exponential:base=10ms,factor=10,max=1s,jitter=none");
    let faults = Faults::none()
        .and(On::Commit, When::Nth(0, 0), CONFLICT)
        .and(On::Commit, When::Nth(0, 1), CONFLICT)
        .and(On::Commit, When::Nth(0, 3), CONFLICT);
    let ran = Case::new(TRANSFER).retry(policy).faults(faults).transactions(2).run();
    assert_eq!(ran.ledger.time.backoff, ms(10 + 100 + 10));
}

#[test]
fn no_attempt_starts_after_the_end_of_the_run() {
    let always = Faults::none().and(On::Commit, When::Chance(1.0), CONFLICT);
    // Attempts end at 4, 8 and 12 ms; the run at 10 ms.
    let ran = Case::new(TRANSFER).faults(always.clone()).time(millis(10)).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 3, retried: 2, cut_off: 1, ..Attempts::default() });
    assert_eq!(ran.ledger.transactions, Transactions { total: 1, cut_off: 1, ..Transactions::default() });
    assert_eq!((ran.ledger.conflicts, ran.outcome.elapsed), (3, millis(12)));
    // The transaction hasn't ended, so its retries aren't counted, and its last conflict isn't
    // counted for a command.
    let script = &ran.outcome.scripts[0];
    assert_eq!((ran.ledger.retries, script.retries, script.retried_transactions), (2, 0, 0));
    assert_eq!((script.commands[4].retries, script.commands[4].failures), (2, 0));
    // An attempt that fails at the very instant of the end is the last one.
    let ran = Case::new(TRANSFER).faults(always).time(millis(8)).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 2, retried: 1, cut_off: 1, ..Attempts::default() });
}

#[test]
fn the_end_of_the_run_cuts_a_backoff_off() {
    let always = Faults::none().and(On::Commit, When::Chance(1.0), CONFLICT);
    for end in [10, 24] {
        let ran =
            Case::new(TRANSFER).retry(backoff("fixed:20ms")).faults(always.clone()).time(millis(end)).run();
        assert_eq!(ran.ledger.attempts, Attempts { started: 1, retried: 1, ..Attempts::default() });
        assert_eq!(ran.ledger.transactions, Transactions { total: 1, cut_off: 1, ..Transactions::default() });
        assert_eq!((ran.ledger.time.wasted, ran.ledger.time.backoff), (ms(4), ms(end - 4)));
        assert_eq!((ran.ledger.retries, ran.outcome.elapsed), (0, millis(end)));
        assert!(ran.outcome.is_complete());
    }
}

#[test]
fn clients_stay_alive_through_any_number_of_conflicts() {
    for probability in [0.01, 0.2, 0.6, 0.95] {
        let faults = Faults::none().and(On::Statement, When::Chance(probability), CONFLICT);
        let ran = Case::new(TRANSFER).clients(8).retry(tries(4)).faults(faults).transactions(20).run();
        assert_eq!(ran.ledger.transactions.total, 160, "at {probability}");
        assert!(ran.outcome.is_complete());
        assert_eq!(ran.ledger.transactions.committed, ran.truth.committed_rows);
    }
}

#[test]
fn the_reply_to_rollback_is_awaited_before_the_next_attempt() {
    let ran = Case::new(TRANSFER).faults(first(On::Insert, 1)).run();
    let texts: Vec<&str> =
        ran.truth.texts(0).iter().map(|sql| sql.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(texts, ["BEGIN", "UPDATE", "INSERT", "ROLLBACK", "BEGIN", "UPDATE", "INSERT", "END"]);
}
