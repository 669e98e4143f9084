//! The three protocols, the network's pieces, prepared statements, results, and COPY.

use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, OnError, Protocol};
use isobench_testkit::simulated::{Answer, End, Fault, Faults, On, When};

use crate::harness::{Case, INSERT, TRANSFER, at, millis};

#[test]
fn all_protocols_execute_the_same() {
    let texts = |protocol| {
        let ran = Case::new(TRANSFER).protocol(protocol).transactions(5).run();
        assert_eq!(ran.ledger.transactions.committed, 5);
        assert_eq!(ran.outcome.elapsed, millis(20));
        ran.truth.texts(0).iter().map(|&sql| sql.to_owned()).collect::<Vec<_>>()
    };
    let simple = texts(Protocol::Simple);
    assert_eq!(texts(Protocol::Extended), simple);
    assert_eq!(texts(Protocol::Prepared), simple);
}

#[test]
fn statements_are_prepared_once_for_a_session() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    for (protocol, parses) in [(Protocol::Simple, 0), (Protocol::Extended, 24), (Protocol::Prepared, 4)] {
        let faults = Faults::none().and(On::Commit, When::First(2), conflict);
        let ran = Case::new(TRANSFER).clients(2).protocol(protocol).faults(faults).transactions(4).run();
        assert_eq!(ran.truth.parses, [parses; 2], "{protocol:?}");
    }
}

#[test]
fn a_statement_whose_preparation_failed_is_prepared_again() {
    for code in [SqlState::SERIALIZATION_FAILURE, SqlState::UNDEFINED_TABLE] {
        let faults = Faults::none().and(On::Parse, When::Nth(0, 2), Fault::Error(code));
        let mut case = Case::new(TRANSFER).protocol(Protocol::Prepared).faults(faults).transactions(3);
        case.spec.on_error = OnError::Continue;
        let ran = case.run();
        assert_eq!(ran.truth.parses, [5], "{code}");
        let errored = u64::from(code == SqlState::UNDEFINED_TABLE);
        assert_eq!((ran.ledger.attempts.committed, ran.ledger.attempts.errored), (3 - errored, errored));
    }
}

#[test]
fn replies_may_arrive_in_pieces_and_requests_leave_in_pieces() {
    for protocol in Protocol::ALL {
        let mut case = Case::new(TRANSFER).clients(3).protocol(protocol).transactions(10);
        case.settings.pieces = Some(3);
        case.settings.short_writes = Some(5);
        let ran = case.run();
        assert_eq!((ran.ledger.attempts.committed, ran.truth.committed_rows), (30, 30), "{protocol:?}");
    }
}

#[test]
fn a_reply_may_be_larger_than_the_buffer() {
    const WIDE: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";
    let mut case = Case::new("SELECT everything;\n").transactions(2);
    case.settings.answers = vec![("everything", Answer::column("v", &[WIDE; 5_000]))];
    let ran = case.run();
    assert_eq!(ran.ledger.attempts.committed, 2);
}

#[test]
fn several_statements_travel_together() {
    let script = "BEGIN\\; INSERT INTO h VALUES (1)\\; COMMIT;\n";
    let ran = Case::new(script).transactions(2).run();
    assert_eq!(ran.truth.texts(0), ["BEGIN", "INSERT INTO h VALUES (1)", "COMMIT"].repeat(2));
    let faults = Faults::none().and(On::Insert, When::First(1), Fault::Error(SqlState::DEADLOCK_DETECTED));
    let ran = Case::new(script).faults(faults).run();
    assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 1));
    let lost = Faults::none().and(On::Insert, When::First(1), Fault::TERMINATED);
    assert_eq!(Case::new(script).faults(lost).run().ledger.attempts.ambiguous, 1);
}

#[test]
fn an_error_ends_an_implicit_transaction() {
    let faults =
        Faults::none().and(On::Insert, When::First(2), Fault::Error(SqlState::SERIALIZATION_FAILURE));
    for protocol in Protocol::ALL {
        let ran = Case::new(INSERT).protocol(protocol).faults(faults.clone()).run();
        assert_eq!(ran.ledger.attempts.retried, 2, "{protocol:?}");
        assert!(ran.truth.matching(0, "ROLLBACK").is_empty());
    }
}

#[test]
fn a_syntax_error_is_left_to_the_server() {
    for protocol in Protocol::ALL {
        let ran = Case::new("BEGIN;\nBROKEN;\nEND;\n").protocol(protocol).run();
        let (place, failed) = ran.server_error();
        assert_eq!((place, failed.error.code, failed.query), (at(0, 0, 1), SqlState::SYNTAX_ERROR, 0));
        assert_eq!(failed.text.as_deref(), Some("BROKEN;"), "{protocol:?}");
        assert_eq!(ran.ledger.attempts.errored, 1);
    }
}

#[test]
fn copy_ends_the_client_in_every_protocol() {
    for protocol in Protocol::ALL {
        for copy in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
            for open in ["BEGIN;\n", ""] {
                let mut case = Case::new(&format!("{open}{copy};\n")).protocol(protocol).transactions(2);
                case.spec.on_error = OnError::Continue;
                let ran = case.run();
                assert_eq!(ran.ledger.transactions.total, 1, "{protocol:?} {copy}");
                assert_eq!((ran.ledger.attempts.errored, ran.outcome.aborted), (1, 1));
                let command = usize::from(!open.is_empty());
                assert_eq!(ran.abort(), (at(0, 0, command), AbortCause::Copy));
            }
        }
    }
}

#[test]
fn statements_after_an_error_in_a_block_arent_sent() {
    let faults = Faults::none().and(On::Update, When::First(1), Fault::Error(SqlState::UNDEFINED_TABLE));
    let case = Case::new(TRANSFER).faults(faults);
    let ends = |case: Case| -> Vec<End> {
        case.run().truth.statements[0].iter().map(|statement| statement.end).collect()
    };
    let failed = End::Failed(SqlState::UNDEFINED_TABLE);
    // The server rolls back by itself when the session ends.
    assert_eq!(ends(case.clone()), [End::Done, failed]);
    assert_eq!(ends(case.on_error(OnError::Continue)), [End::Done, failed, End::Done]);
}
