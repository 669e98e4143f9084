//! Connections lost in every state of the client: the bucket of the attempt, and the other clients,
//! which continue.

use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, Pacing, Protocol};
use isobench_stats::{Attempts, Transactions};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, backoff, millis, ms};

/// Two clients with three transactions each; the fault hits the second transaction of the first
/// client.
fn struck(script: &str, on: On, fault: Fault) -> RunResult {
    let ran = Case::new(script)
        .clients(2)
        .transactions(3)
        .faults(Faults::none().and(on, When::Nth(0, 1), fault))
        .run();
    assert_eq!(ran.outcome.aborted, 1);
    assert!(!ran.outcome.is_complete());
    assert_eq!(ran.abort().0.client, 0);
    ran
}

/// The reason for the loss, and the server's last error.
fn lost(ran: &RunResult) -> (String, Option<SqlState>) {
    match ran.abort().1 {
        AbortCause::Lost(why, last) => (why, last.map(|error| error.code)),
        other => panic!("{other:?}"),
    }
}

const ERRORED: Attempts = Attempts {
    started: 5,
    committed: 4,
    errored: 1,
    retried: 0,
    given_up: 0,
    swallowed: 0,
    rolled_back: 0,
    ambiguous: 0,
    cut_off: 0,
};
const AMBIGUOUS: Attempts = Attempts { errored: 0, ambiguous: 1, ..ERRORED };

#[test]
fn before_the_commit_the_transaction_is_errored() {
    for loss in [Loss::Closed, Loss::Reset] {
        for on in [On::Begin, On::Update, On::Insert] {
            for fault in [Fault::Lost(loss), Fault::LostAfter(loss), Fault::TERMINATED] {
                let ran = struck(TRANSFER, on, fault);
                assert_eq!((ran.ledger.attempts, ran.truth.committed_rows), (ERRORED, 4), "{on:?} {fault:?}");
            }
        }
    }
}

#[test]
fn while_committing_the_transaction_is_ambiguous() {
    for (fault, rows) in [
        (Fault::Lost(Loss::Closed), 4),
        (Fault::Lost(Loss::Reset), 4),
        (Fault::LostAfter(Loss::Closed), 5),
        (Fault::LostAfter(Loss::Reset), 5),
        (Fault::TERMINATED, 4),
    ] {
        let ran = struck(TRANSFER, On::Commit, fault);
        assert_eq!((ran.ledger.attempts, ran.truth.committed_rows), (AMBIGUOUS, rows), "{fault:?}");
    }
}

#[test]
fn a_statement_that_commits_by_itself_is_ambiguous_in_every_protocol() {
    for protocol in Protocol::ALL {
        let faults = Faults::none().and(On::Insert, When::Nth(0, 0), Fault::LostAfter(Loss::Closed));
        let ran = Case::new(INSERT).protocol(protocol).faults(faults).run();
        assert_eq!((ran.ledger.attempts.ambiguous, ran.truth.committed_rows), (1, 1), "{protocol:?}");
    }
}

#[test]
fn a_fatal_error_right_after_the_reply_doesnt_undo_the_commit() {
    let ran = struck(TRANSFER, On::Commit, Fault::TerminatedAfterReply);
    assert_eq!((ran.ledger.transactions.total, ran.ledger.transactions.committed), (5, 5));
    assert_eq!(lost(&ran).1, Some(SqlState::ADMIN_SHUTDOWN));
}

#[test]
fn the_reason_of_the_server_is_reported() {
    let ran = struck(TRANSFER, On::Update, Fault::TERMINATED);
    let why = "server closed the connection unexpectedly";
    assert_eq!(lost(&ran), (why.to_owned(), Some(SqlState::ADMIN_SHUTDOWN)));
    assert_eq!(ran.abort().0.command, 2);
    assert_eq!(lost(&struck(TRANSFER, On::Update, Fault::Lost(Loss::Closed))), (why.to_owned(), None));
}

#[test]
fn in_a_sleep_the_transaction_is_errored() {
    let script = "BEGIN;\nINSERT INTO h VALUES (1);\n\\sleep 10 ms\nEND;\n";
    let lost = Fault::LostWhenIdle(millis(4), Loss::Reset);
    let ran = Case::new(script).faults(Faults::none().and(On::Insert, When::First(1), lost)).run();
    assert_eq!((ran.ledger.attempts.errored, ran.outcome.elapsed), (1, millis(6)));
    assert_eq!(ran.ledger.time.wasted, ms(6));
}

#[test]
fn in_a_rollback_the_transaction_is_errored_and_the_conflict_counted() {
    let faults = Faults::none()
        .and(On::Update, When::First(1), Fault::Error(SqlState::SERIALIZATION_FAILURE))
        .and(On::Rollback, When::First(1), Fault::Lost(Loss::Closed));
    let ran = Case::new(TRANSFER).faults(faults).run();
    assert_eq!((ran.ledger.attempts.errored, ran.ledger.conflicts), (1, 1));
}

#[test]
fn a_rollback_that_fails_ends_the_client() {
    let faults = Faults::none()
        .and(On::Update, When::First(1), Fault::Error(SqlState::SERIALIZATION_FAILURE))
        .and(On::Rollback, When::First(1), Fault::Error(SqlState::INTERNAL_ERROR));
    let ran = Case::new(TRANSFER).faults(faults).run();
    assert_eq!(lost(&ran), ("ROLLBACK failed, the session is unusable".to_owned(), None));
    assert_eq!(ran.ledger.attempts.errored, 1);
}

#[test]
fn in_a_backoff_the_transaction_is_cut_off() {
    let faults = Faults::none()
        .and(On::Update, When::First(1), Fault::Error(SqlState::SERIALIZATION_FAILURE))
        .and(On::Rollback, When::First(1), Fault::LostWhenIdle(millis(5), Loss::Closed));
    let ran = Case::new(TRANSFER).retry(backoff("fixed:20ms")).faults(faults).run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 1, retried: 1, ..Attempts::default() });
    assert_eq!(ran.ledger.transactions, Transactions { total: 1, cut_off: 1, ..Transactions::default() });
    assert_eq!((ran.ledger.time.wasted, ran.ledger.time.backoff), (ms(3), ms(5)));
    assert_eq!(ran.outcome.aborted, 1);
}

#[test]
fn between_transactions_no_transaction_is_counted() {
    let lost = Fault::LostWhenIdle(millis(5), Loss::Closed);
    let ran = Case::new(TRANSFER)
        .pacing(Pacing::ThinkTime(millis(20)))
        .transactions(3)
        .faults(Faults::none().and(On::Commit, When::First(1), lost))
        .run();
    assert_eq!(ran.ledger.transactions, Transactions { total: 1, committed: 1, ..Transactions::default() });
    assert_eq!((ran.ledger.time.waiting, ran.outcome.aborted), (ms(5), 1));
}

#[test]
fn an_unknown_result_stays_ambiguous_when_the_connection_is_lost_with_it() {
    for committed in [false, true] {
        let ran = struck(TRANSFER, On::Commit, Fault::UnknownThenLost { committed });
        assert_eq!((ran.ledger.attempts, ran.truth.committed_rows), (AMBIGUOUS, 4 + u64::from(committed)));
    }
}

#[test]
fn a_conflict_stays_one_when_the_connection_is_lost_with_it() {
    let ran = struck(TRANSFER, On::Commit, Fault::ErrorThenLost(SqlState::SERIALIZATION_FAILURE));
    assert_eq!((ran.ledger.attempts, ran.ledger.conflicts, ran.truth.committed_rows), (ERRORED, 1, 4));
}

/// A standby ends sessions that conflict with its recovery: FATAL 40001.
#[test]
fn a_conflict_that_ends_the_session_is_counted_by_its_reason() {
    let fault = Fault::TerminatedBy(SqlState::SERIALIZATION_FAILURE);
    let ran = struck(TRANSFER, On::Update, fault);
    assert_eq!((ran.ledger.attempts, ran.ledger.conflicts), (ERRORED, 1));
    assert_eq!(ran.outcome.conflicts[0].reason, "concurrent update");
    // The error doesn't say whether the commit succeeded before, so it isn't a conflict.
    let ran = struck(TRANSFER, On::Commit, fault);
    assert_eq!((ran.ledger.attempts, ran.ledger.conflicts), (AMBIGUOUS, 0));
}
