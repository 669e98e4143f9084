//! Every bucket of attempts and transactions, and the time spent in each.

use isobench_pgwire::SqlState;
use isobench_runner::{ClientEvent, OnError, TransactionEnd};
use isobench_stats::{Attempts, TimeLedger, Transactions};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, INSERT, TRANSFER, at, millis, ms, tries};

fn first(on: On, fault: Fault) -> Faults {
    Faults::none().and(on, When::First(1), fault)
}

#[test]
fn a_committed_transaction_is_useful_time() {
    let ran = Case::new(TRANSFER).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 1, committed: 1, ..Attempts::default() });
    assert_eq!(ran.ledger.transactions, Transactions { total: 1, committed: 1, ..Transactions::default() });
    assert_eq!(ran.ledger.time, TimeLedger { useful: ms(4), ..TimeLedger::default() });
    assert_eq!((ran.outcome.elapsed, ran.outcome.latency().max_ms()), (millis(4), Some(4.0)));
    assert!(ran.outcome.is_complete());
}

#[test]
fn a_conflict_is_retried_and_its_time_is_wasted() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let ran = Case::new(TRANSFER).faults(first(On::Update, conflict)).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 2, committed: 1, retried: 1, ..Attempts::default() });
    assert_eq!(ran.ledger.transactions, Transactions { total: 1, committed: 1, ..Transactions::default() });
    // Wasted: BEGIN, UPDATE, ROLLBACK.
    assert_eq!(ran.ledger.time, TimeLedger { useful: ms(4), wasted: ms(3), ..TimeLedger::default() });
    assert_eq!(ran.outcome.latency().max_ms(), Some(7.0));
    assert_eq!((ran.ledger.conflicts, ran.ledger.retries), (1, 1));
    assert_eq!((ran.outcome.scripts[0].retried_transactions, ran.outcome.scripts[0].retries), (1, 1));
    let [conflict] = &ran.outcome.conflicts[..] else { panic!("{:?}", ran.outcome.conflicts) };
    assert_eq!(
        (conflict.sqlstate, conflict.command, conflict.count),
        (SqlState::SERIALIZATION_FAILURE, 2, 1)
    );
    assert_eq!((conflict.reason.as_ref(), &conflict.object), ("concurrent update", &None));
}

#[test]
fn a_conflict_at_commit_needs_no_rollback() {
    let deadlock = Fault::Error(SqlState::DEADLOCK_DETECTED);
    let ran = Case::new(TRANSFER).faults(first(On::Commit, deadlock)).run();
    assert_eq!(ran.ledger.time, TimeLedger { useful: ms(4), wasted: ms(4), ..TimeLedger::default() });
    assert_eq!(
        (ran.outcome.conflicts[0].sqlstate, ran.outcome.conflicts[0].command),
        (SqlState::DEADLOCK_DETECTED, 4)
    );
    let object = ran.outcome.conflicts[0].object.as_deref();
    assert_eq!(object, Some("while updating tuple (0,1) in relation \"t\""), "as the classifier says");
    assert!(ran.truth.matching(0, "ROLLBACK").is_empty());
}

#[test]
fn conflicts_are_counted_for_their_commands() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Update, When::First(3), conflict);
    let ran = Case::new(TRANSFER).faults(faults).retry(tries(2)).transactions(2).run();
    let update = &ran.outcome.scripts[0].commands[2];
    // First transaction: retried, given up. Second: retried, committed.
    assert_eq!((update.retries, update.failures, update.latency.count()), (2, 1, 1));
    assert_eq!(ran.outcome.scripts[0].commands[1].latency.count(), 4);
    assert_eq!(ran.outcome.conflicts[0].count, 3);
}

#[test]
fn without_retries_a_conflict_is_given_up() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let ran = Case::new(TRANSFER).faults(first(On::Insert, conflict)).retry(tries(1)).transactions(2).run();
    assert_eq!(
        ran.ledger.attempts,
        Attempts { started: 2, committed: 1, given_up: 1, ..Attempts::default() }
    );
    assert_eq!(
        ran.ledger.transactions,
        Transactions { total: 2, committed: 1, given_up: 1, ..Transactions::default() }
    );
    assert_eq!((ran.ledger.conflicts, ran.truth.committed_rows), (1, 1));
}

#[test]
fn an_unknown_result_is_ambiguous_and_not_retried() {
    for (committed, rows) in [(false, 1), (true, 2)] {
        let ran =
            Case::new(TRANSFER).faults(first(On::Commit, Fault::Unknown { committed })).transactions(2).run();
        assert_eq!(
            ran.ledger.attempts,
            Attempts { started: 2, committed: 1, ambiguous: 1, ..Attempts::default() }
        );
        assert_eq!((ran.ledger.conflicts, ran.truth.committed_rows), (0, rows));
        assert!(ran.outcome.is_complete());
    }
}

#[test]
fn a_commit_that_is_answered_with_rollback_is_no_commit() {
    let mut case = Case::new(TRANSFER).faults(first(On::Commit, Fault::AnsweredWithRollback)).transactions(2);
    case.spec.on_error = OnError::Continue;
    let ran = case.run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 2, committed: 1, errored: 1, ..Attempts::default() });
    assert_eq!(ran.truth.committed_rows, 1);
}

#[test]
fn another_error_ends_the_client() {
    let error = Fault::Error(SqlState::UNDEFINED_TABLE);
    let faults = Faults::none().and(On::Update, When::Nth(0, 1), error);
    let ran = Case::new(TRANSFER).clients(2).faults(faults).transactions(3).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 5, committed: 4, errored: 1, ..Attempts::default() });
    assert_eq!(ran.outcome.aborted, 1);
    assert!(!ran.outcome.is_complete());
    let (place, failed) = ran.server_error();
    assert_eq!((place, failed.error.code, failed.query), (at(0, 0, 2), SqlState::UNDEFINED_TABLE, 0));
    assert!(failed.text.is_some_and(|text| text.starts_with("UPDATE t SET v = v + ")));
    assert_eq!(ran.outcome.aborted_in, Some(0));
    assert_eq!(ran.outcome.scripts[0].commands[2].failures, 1);
}

#[test]
fn asked_to_continue_the_client_abandons_the_transaction_only() {
    let error = Fault::Error(SqlState::UNDEFINED_TABLE);
    let mut case = Case::new(TRANSFER).faults(first(On::Update, error)).transactions(3);
    case.spec.on_error = OnError::Continue;
    let ran = case.run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 3, committed: 2, errored: 1, ..Attempts::default() });
    assert!(ran.outcome.is_complete());
    let [ClientEvent::Abandoned(place, failed)] = &ran.events[..] else { panic!("{:?}", ran.events) };
    assert_eq!((*place, failed.error.code), (at(0, 0, 2), SqlState::UNDEFINED_TABLE));
    assert_eq!(ran.outcome.aborted_in, None);
    let observed: Vec<_> = ran.ended.iter().map(|ended| (ended.number, ended.end, ended.tries)).collect();
    assert_eq!(
        observed,
        [
            (1, TransactionEnd::OtherError, 1),
            (2, TransactionEnd::Committed, 1),
            (3, TransactionEnd::Committed, 1)
        ]
    );
}

#[test]
fn late_transactions_are_counted() {
    let ran = Case::new(TRANSFER).limit(millis(3)).transactions(2).run();
    assert_eq!((ran.ledger.late, ran.ledger.transactions.committed), (2, 2));
    let ran = Case::new(TRANSFER).limit(millis(4)).transactions(2).run();
    assert_eq!(ran.ledger.late, 0);
}

#[test]
fn commands_are_timed_one_by_one() {
    let ran = Case::new(TRANSFER).transactions(5).run();
    let commands = &ran.outcome.scripts[0].commands;
    let counts: Vec<_> = commands.iter().map(|command| command.latency.count()).collect();
    let means: Vec<_> = commands.iter().filter_map(|command| command.latency.mean_ms()).collect();
    assert_eq!(counts, [5; 5]);
    assert_eq!(means, [0.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn scripts_have_accounts_of_their_own() {
    let mut case = Case::new(TRANSFER).transactions(200);
    case.scripts.push((INSERT.to_owned(), 3));
    let ran = case.run();
    let committed: Vec<u64> =
        ran.outcome.scripts.iter().map(|script| script.ledger.transactions.committed).collect();
    assert_eq!(committed.iter().sum::<u64>(), 200);
    assert!((30..70).contains(&committed[0]), "{committed:?}");
}

#[test]
fn notices_and_parameters_in_between_change_nothing() {
    let faults = Faults::none().and(On::Update, When::First(1), Fault::Notice).and(
        On::Commit,
        When::First(1),
        Fault::ParameterStatus,
    );
    let ran = Case::new(TRANSFER).faults(faults).run();
    assert_eq!(ran.ledger.attempts.committed, 1);
    let [ClientEvent::Notice(notice)] = &ran.events[..] else { panic!("{:?}", ran.events) };
    assert_eq!((notice.severity.as_str(), notice.message.as_str()), ("NOTICE", "by the way"));
}
