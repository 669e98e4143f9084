//! Pgbench's rules and those of a measurement side by side.

use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_runner::{
    AbortCause, ClientEvent, ClientStep, Detail, OnError, Pacing, Protocol, Rules, TransactionEnd, Unfinished,
};
use isobench_testkit::simulated::{Answer, Fault, Faults, Loss, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, at, millis, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);
const BROKEN: Fault = Fault::Error(SqlState::UNDEFINED_TABLE);

/// The error of executing a statement that isn't prepared.
const NO_STATEMENT: SqlState = SqlState(*b"26000");

const PIPELINE: &str = "\\startpipeline
BEGIN;
UPDATE t SET v = 1;
INSERT INTO h VALUES (1);
END;
\\endpipeline
";

/// The statements that couldn't be prepared: code, number in the request, text.
fn not_prepared(ran: &RunResult) -> Vec<(SqlState, u32, Option<&str>)> {
    let reported = ran.events.iter().filter_map(|event| match event {
        ClientEvent::NotPrepared(failed) => Some((failed.error.code, failed.query, failed.text.as_deref())),
        _ => None,
    });
    reported.collect()
}

#[test]
fn pgbench_keeps_the_variables_of_a_failed_attempt() {
    let script = "BEGIN;\n\\set n :n + 1\nINSERT INTO h VALUES (:n);\nEND;\n";
    for (rules, values) in [(Rules::Isobench, [1, 1, 1, 2]), (Rules::Pgbench, [1, 2, 3, 4])] {
        let faults = Faults::none().and(On::Commit, When::First(2), CONFLICT);
        let mut case = Case::new(script).rules(rules).faults(faults).transactions(2);
        case.variables = vec![("n", 0)];
        let ran = case.run();
        let expected = values.map(|n| format!("INSERT INTO h VALUES ({n})"));
        assert_eq!(ran.truth.matching(0, "INSERT"), expected, "{rules:?}");
    }
}

#[test]
fn pgbench_keeps_the_results_of_a_failed_attempt() {
    let script = "BEGIN;\nSELECT :v;\nSELECT answer AS v \\gset\nUPDATE t SET v = 1;\nEND;\n";
    for (rules, second) in [(Rules::Isobench, "SELECT :v"), (Rules::Pgbench, "SELECT 42")] {
        let faults = Faults::none().and(On::Update, When::First(1), CONFLICT);
        let mut case = Case::new(script).rules(rules).faults(faults);
        case.settings.answers = vec![("answer", Answer::column("v", &["42"]))];
        assert_eq!(case.run().truth.texts(0)[6], second, "{rules:?}");
    }
}

#[test]
fn random_numbers_repeat_by_both_rules() {
    for rules in [Rules::Isobench, Rules::Pgbench] {
        let faults = Faults::none().and(On::Insert, When::First(3), CONFLICT);
        let ran = Case::new(TRANSFER).rules(rules).faults(faults).transactions(2).run();
        let mut updates = ran.truth.matching(0, "UPDATE");
        assert_eq!(updates.len(), 5);
        updates.dedup();
        assert_eq!(updates.len(), 2, "{rules:?}");
    }
}

/// Two scripts, and reports of each choice.
fn choosing(rules: Rules, clients: usize) -> Case {
    let mut case = Case::new(TRANSFER).rules(rules).clients(clients).detail(Detail {
        errors: false,
        steps: true,
        variables: false,
    });
    case.scripts.push((INSERT.to_owned(), 1));
    case
}

/// The chosen scripts, in order, with the clients that chose.
fn choices(ran: &RunResult) -> Vec<(usize, usize)> {
    let chosen = ran.events.iter().filter_map(|event| match event {
        ClientEvent::Trace { client, step: ClientStep::Script(script) } => Some((*client, *script)),
        _ => None,
    });
    chosen.collect()
}

#[test]
fn pgbenchs_clients_share_the_choice_of_scripts() {
    let shared = choices(&choosing(Rules::Pgbench, 2).transactions(20).run());
    let own = choices(&choosing(Rules::Isobench, 2).transactions(40).run());
    // The worker's stream is split from the seed where the first client's is.
    let of_both: Vec<usize> = shared.iter().map(|(_, script)| *script).collect();
    let of_first: Vec<usize> =
        own.iter().filter(|(client, _)| *client == 0).map(|(_, script)| *script).collect();
    assert_eq!(of_both, of_first);
    assert!((0..2).all(|client| shared.iter().filter(|choice| choice.0 == client).count() == 20));
}

#[test]
fn with_one_client_both_rules_do_the_same() {
    for protocol in Protocol::ALL {
        let [isobench, pgbench] = [Rules::Isobench, Rules::Pgbench]
            .map(|rules| choosing(rules, 1).protocol(protocol).transactions(50).run());
        assert_eq!(isobench.truth, pgbench.truth, "{protocol:?}");
        assert_eq!(isobench.events, pgbench.events);
        assert_eq!(isobench.ended, pgbench.ended);
    }
}

#[test]
fn pgbenchs_workers_have_equal_shares_of_the_rate() {
    // The simulation has one worker for all clients, so it gets either the whole rate or one of
    // three shares.
    let committed = |rules| {
        let mut case = Case::new(INSERT).rules(rules).clients(6).pacing(Pacing::Rate(300.0));
        case.spec.workers = 3;
        case.time(millis(10_000)).run().ledger.transactions.committed
    };
    let (whole, third) = (committed(Rules::Isobench), committed(Rules::Pgbench));
    assert!((2_800..3_200).contains(&whole), "{whole}");
    assert!((900..1_100).contains(&third), "{third}");
}

#[test]
fn pgbench_forgets_what_fails_when_the_time_is_over() {
    // Attempts end at 4, 8 and 12 ms; the run at 10 ms.
    for (rules, given_up, cut_off, reported) in [(Rules::Isobench, 3, 0, 6), (Rules::Pgbench, 2, 1, 5)] {
        let faults = Faults::none().and(On::Commit, When::Chance(1.0), CONFLICT);
        let case = Case::new(TRANSFER).rules(rules).faults(faults).retry(tries(1)).time(millis(10));
        let ran = case.detail(Detail { errors: true, steps: false, variables: false }).run();
        let transactions = ran.ledger.transactions;
        assert_eq!((transactions.given_up, transactions.cut_off), (given_up, cut_off), "{rules:?}");
        assert_eq!(ran.outcome.scripts[0].commands[4].failures, given_up);
        assert_eq!((ran.events.len(), ran.ended.len() as u64), (reported, given_up));
    }
}

#[test]
fn a_failed_preparation_is_the_attempts_error() {
    let faults = Faults::none().and(On::Parse, When::Nth(0, 2), BROKEN);
    let ran = Case::new(TRANSFER).protocol(Protocol::Prepared).faults(faults).run();
    let (place, failed) = ran.server_error();
    assert_eq!((place, failed.error.code, failed.query), (at(0, 0, 3), SqlState::UNDEFINED_TABLE, 0));
    assert_eq!(failed.text.as_deref(), Some("INSERT INTO h VALUES ($1);"));
    assert_eq!((not_prepared(&ran), ran.outcome.scripts[0].commands[3].failures), (vec![], 1));
}

#[test]
fn pgbench_goes_on_after_a_failed_preparation() {
    for fault in [BROKEN, CONFLICT] {
        let Fault::Error(code) = fault else { unreachable!() };
        let faults = Faults::none().and(On::Parse, When::Nth(0, 2), fault);
        let case = Case::new(TRANSFER).rules(Rules::Pgbench).protocol(Protocol::Prepared).faults(faults);
        let ran = case.clone().run();
        let text = "INSERT INTO h VALUES ($1);";
        assert_eq!(not_prepared(&ran), [(code, 0, Some(text))]);
        // The client ends by the error of the execution, which sent only a name, even if a conflict
        // came first.
        let (place, failed) = ran.server_error();
        assert_eq!((place, failed.error.code, failed.query), (at(0, 0, 3), NO_STATEMENT, 0));
        assert_eq!((failed.text, ran.ledger.attempts.errored, ran.ledger.conflicts), (None, 1, 0));
        // Under pgbench's rules it isn't prepared again, and END isn't prepared at all.
        let ran = case.on_error(OnError::Continue).transactions(3).run();
        assert_eq!((ran.truth.parses[0], not_prepared(&ran).len()), (3, 1));
        assert_eq!((ran.ledger.attempts.errored, ran.outcome.aborted), (3, 0));
    }
}

#[test]
fn a_conflict_while_preparing_is_retried_except_by_pgbench() {
    for script in [TRANSFER, INSERT, PIPELINE] {
        let faults = Faults::none().and(On::Parse, When::Nth(0, 0), CONFLICT);
        let case = Case::new(script).protocol(Protocol::Prepared).faults(faults).transactions(2);
        let ran = case.clone().run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 2), "{script}");
        let ran = case.clone().retry(tries(1)).run();
        assert_eq!((ran.ledger.attempts.given_up, ran.ledger.attempts.committed), (1, 1));
        let ran = case.rules(Rules::Pgbench).run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.errored), (0, 1));
        assert_eq!(not_prepared(&ran).len(), 1);
    }
}

#[test]
fn a_failed_preparation_for_a_pipeline_names_its_statement() {
    let faults = Faults::none().and(On::Parse, When::Nth(0, 1), BROKEN);
    let case = Case::new(PIPELINE).protocol(Protocol::Prepared).faults(faults);
    let ran = case.clone().run();
    let (place, failed) = ran.server_error();
    assert_eq!((place, failed.error.code), (at(0, 0, 2), SqlState::UNDEFINED_TABLE));
    assert_eq!(failed.text.as_deref(), Some("UPDATE t SET v = 1;"));
    // pgbench prepares the others nevertheless, and blames the end of the pipeline for the
    // consequences.
    let ran = case.rules(Rules::Pgbench).run();
    let text = "UPDATE t SET v = 1;";
    assert_eq!(not_prepared(&ran), [(SqlState::UNDEFINED_TABLE, 0, Some(text))]);
    let (place, failed) = ran.server_error();
    assert_eq!((place, failed.error.code, failed.text), (at(0, 0, 5), NO_STATEMENT, None));
    assert_eq!(ran.truth.parses, [4]);
}

#[test]
fn pgbench_blames_the_end_of_a_pipeline() {
    for protocol in [Protocol::Extended, Protocol::Prepared] {
        for (rules, command) in [(Rules::Isobench, 3), (Rules::Pgbench, 5)] {
            let case = |fault| {
                let faults = Faults::none().and(On::Insert, When::First(1), fault);
                Case::new(PIPELINE).rules(rules).protocol(protocol).faults(faults).run()
            };
            let ran = case(BROKEN);
            assert_eq!(ran.server_error().0, at(0, 0, command), "{rules:?}");
            // pgbench doesn't count the error that ends the client.
            let counted = u64::from(rules == Rules::Isobench);
            assert_eq!(ran.outcome.scripts[0].commands[command].failures, counted);
            let ran = case(CONFLICT);
            assert_eq!(ran.outcome.conflicts[0].command, command, "{rules:?}");
            assert_eq!(ran.outcome.scripts[0].commands[command].retries, 1);
        }
    }
}

#[test]
fn pgbench_blames_the_end_though_the_error_came_before() {
    // The reply comes during the sleep.
    let script = "\\startpipeline\nSELECT 1;\nUPDATE t SET v = 1;\n\\syncpipeline\n\\sleep 9 ms\n\
        SELECT 2;\n\\endpipeline\n";
    for (rules, command) in [(Rules::Isobench, 2), (Rules::Pgbench, 6)] {
        let faults = Faults::none().and(On::Update, When::First(1), BROKEN);
        let ran = Case::new(script).rules(rules).protocol(Protocol::Extended).faults(faults).run();
        assert_eq!(ran.server_error().0, at(0, 0, command), "{rules:?}");
    }
}

#[test]
fn a_script_that_ends_inside_a_block_counts_as_done_by_pgbenchs_rules() {
    for (rules, committed, errored) in [(Rules::Isobench, 0, 1), (Rules::Pgbench, 1, 0)] {
        let ran = Case::new("BEGIN;\nSELECT 1;\n").rules(rules).transactions(2).run();
        assert_eq!(ran.abort(), (at(0, 0, 2), AbortCause::Unfinished(Unfinished::Block)));
        let transactions = ran.ledger.transactions;
        assert_eq!(
            (transactions.total, transactions.committed, transactions.errored),
            (1, committed, errored)
        );
        assert_eq!((ran.outcome.aborted, ran.count(TransactionEnd::Committed)), (1, committed), "{rules:?}");
    }
}

#[test]
fn a_connection_lost_while_preparing_ends_the_client_by_both_rules() {
    for rules in [Rules::Isobench, Rules::Pgbench] {
        let lost = Fault::Lost(Loss::Closed);
        let faults = Faults::none().and(On::Parse, When::Nth(0, 2), lost);
        let ran = Case::new(TRANSFER)
            .rules(rules)
            .protocol(Protocol::Prepared)
            .faults(faults)
            .transactions(2)
            .run();
        assert!(
            matches!(ran.abort(), (place, AbortCause::Lost(_, None)) if place == at(0, 0, 3)),
            "{rules:?}"
        );
        // Nothing outstanding could have committed.
        assert_eq!((ran.ledger.attempts.errored, ran.ledger.attempts.ambiguous), (1, 0));
    }
}

/// A statement, a pause, and another statement.
const PAUSES: &str = "UPDATE t SET v = 1;\n\\sleep 9 ms\nSELECT 1;\n";

#[test]
fn pgbench_notices_a_loss_when_it_needs_the_connection() {
    for (rules, place, elapsed) in
        [(Rules::Isobench, at(0, 0, 1), millis(3)), (Rules::Pgbench, at(0, 0, 2), millis(10))]
    {
        for loss in [Loss::Closed, Loss::Reset] {
            let faults = Faults::none().and(On::Update, When::First(1), Fault::LostWhenIdle(millis(2), loss));
            let ran = Case::new(PAUSES).rules(rules).faults(faults).run();
            assert!(
                matches!(ran.abort(), (at, AbortCause::Lost(_, None)) if at == place),
                "{:?}",
                ran.events
            );
            assert_eq!((ran.outcome.elapsed, ran.ledger.attempts.errored), (elapsed, 1), "{rules:?}");
        }
    }
}

#[test]
fn pgbench_doesnt_notice_a_loss_after_the_last_statement() {
    let script = "UPDATE t SET v = 1;\n\\sleep 9 ms\n";
    for (rules, committed, aborted) in [(Rules::Isobench, 0, 1), (Rules::Pgbench, 1, 0)] {
        let lost = Fault::LostWhenIdle(millis(2), Loss::Closed);
        let ran =
            Case::new(script).rules(rules).faults(Faults::none().and(On::Update, When::First(1), lost)).run();
        assert_eq!((ran.ledger.attempts.committed, ran.outcome.aborted), (committed, aborted), "{rules:?}");
    }
}

#[test]
fn pgbench_notices_a_loss_between_transactions_in_the_next_one() {
    for fault in [Fault::LostWhenIdle(millis(2), Loss::Closed), Fault::TerminatedAfterReply] {
        let last = (fault == Fault::TerminatedAfterReply).then_some(SqlState::ADMIN_SHUTDOWN);
        for (rules, total) in [(Rules::Isobench, 1), (Rules::Pgbench, 2)] {
            for pacing in [Pacing::ThinkTime(millis(5)), Pacing::Unpaced] {
                if pacing == Pacing::Unpaced && last.is_none() {
                    continue;
                }
                let faults = Faults::none().and(On::Commit, When::First(1), fault);
                let case = Case::new(TRANSFER).rules(rules).pacing(pacing).faults(faults).transactions(3);
                let ran = case.run();
                let (place, AbortCause::Lost(_, said)) = ran.abort() else { panic!("{:?}", ran.events) };
                assert_eq!(said.map(|error| error.code), last);
                assert_eq!((ran.ledger.transactions.total, ran.ledger.attempts.committed), (total, 1));
                if rules == Rules::Pgbench {
                    assert_eq!(
                        (place, ran.ledger.attempts.errored),
                        (at(0, 0, 1), 1),
                        "{fault:?} {pacing:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn pgbench_blames_the_end_of_a_pipeline_for_a_loss() {
    let script =
        "\\startpipeline\nUPDATE t SET v = 1;\n\\syncpipeline\n\\sleep 9 ms\nSELECT 2;\n\\endpipeline\n";
    for (rules, command) in [(Rules::Isobench, 3), (Rules::Pgbench, 5)] {
        let faults = Faults::none().and(On::Update, When::First(1), Fault::Lost(Loss::Closed));
        let ran = Case::new(script).rules(rules).protocol(Protocol::Extended).faults(faults).run();
        assert_eq!((ran.abort().0, ran.ledger.attempts.ambiguous), (at(0, 0, command), 1), "{rules:?}");
    }
}

#[test]
fn pgbenchs_clients_leave_when_nothing_more_is_due() {
    let elapsed = |rules| {
        let case = Case::new(INSERT).clients(2).rules(rules).pacing(Pacing::Rate(0.01)).time(millis(20));
        case.run().outcome.elapsed
    };
    assert_eq!(elapsed(Rules::Isobench), millis(20));
    assert_eq!(elapsed(Rules::Pgbench), Duration::ZERO);
}
