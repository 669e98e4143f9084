//! Reports while a run goes on: their order and detail.

use isobench_pgwire::SqlState;
use isobench_runner::{ClientEvent, ClientStep, CommandPlace, Detail, OnError, Protocol, Rules};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

const ERRORS: Detail = Detail { errors: true, steps: false, variables: false };
const STEPS: Detail = Detail { errors: false, steps: true, variables: false };

use crate::harness::{Case, RunResult, TRANSFER, at, backoff, millis, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);
const BROKEN: Fault = Fault::Error(SqlState::UNDEFINED_TABLE);

/// An abbreviated event.
#[derive(Debug, PartialEq)]
enum Reported {
    Aborted(CommandPlace),
    Abandoned(CommandPlace, SqlState),
    Failed(CommandPlace, SqlState),
    /// True for a retry; the attempts so far; the share of the latency limit in percent.
    Follows(bool, u32, Option<f64>),
    NotPrepared(SqlState),
    Step(ClientStep),
}

fn reported(ran: &RunResult) -> Vec<Reported> {
    let short = |event: &ClientEvent| match event {
        ClientEvent::Aborted(place, _) => Reported::Aborted(*place),
        ClientEvent::Abandoned(place, failed) => Reported::Abandoned(*place, failed.error.code),
        ClientEvent::Failed(place, failed) => Reported::Failed(*place, failed.error.code),
        ClientEvent::Follows { client: 0, retry, tries, used } => {
            Reported::Follows(*retry, *tries, used.map(|used| (used * 100.0).round()))
        }
        ClientEvent::NotPrepared(failed) => Reported::NotPrepared(failed.error.code),
        ClientEvent::Trace { client: 0, step } => Reported::Step(step.clone()),
        other => panic!("{other:?}"),
    };
    ran.events.iter().map(short).collect()
}

/// A conflict at each of the first updates.
fn conflicts(count: u64) -> Case {
    Case::new(TRANSFER).faults(Faults::none().and(On::Update, When::First(count), CONFLICT))
}

/// Another error at the first update.
fn broken() -> Case {
    Case::new(TRANSFER).faults(Faults::none().and(On::Update, When::First(1), BROKEN)).transactions(2)
}

const UPDATE: CommandPlace = CommandPlace { client: 0, script: 0, command: 2 };

#[test]
fn conflicts_are_reported_only_if_asked_for() {
    assert_eq!(conflicts(2).retry(tries(2)).run().events, []);
    let ran = conflicts(2).retry(tries(2)).detail(ERRORS).run();
    let conflict = || Reported::Failed(UPDATE, SqlState::SERIALIZATION_FAILURE);
    let expected =
        [conflict(), Reported::Follows(true, 1, None), conflict(), Reported::Follows(false, 2, None)];
    assert_eq!(reported(&ran), expected);
    let ClientEvent::Failed(_, failed) = &ran.events[0] else { panic!("{:?}", ran.events) };
    assert!(failed.text.as_deref().is_some_and(|text| text.starts_with("UPDATE t SET v = v + ")));
}

#[test]
fn the_share_of_the_latency_limit_is_reported() {
    // An attempt takes 3 ms, the pause 4 ms.
    let case = conflicts(9).retry(backoff("fixed:4ms")).limit(millis(10)).detail(ERRORS);
    let ran = case.run();
    let follows = reported(&ran).into_iter().skip(1).step_by(2).collect::<Vec<_>>();
    assert_eq!(
        follows,
        [
            Reported::Follows(true, 1, Some(30.0)),
            Reported::Follows(true, 2, Some(100.0)),
            Reported::Follows(false, 3, Some(170.0))
        ]
    );
}

#[test]
fn an_error_is_reported_before_its_block_is_rolled_back() {
    // The connection is lost with the ROLLBACK: the error was received, its consequences weren't.
    let faults = Faults::none().and(On::Update, When::First(1), CONFLICT).and(
        On::Rollback,
        When::First(1),
        Fault::Lost(Loss::Closed),
    );
    let ran = Case::new(TRANSFER).faults(faults).detail(ERRORS).run();
    let expected = [Reported::Failed(UPDATE, SqlState::SERIALIZATION_FAILURE), Reported::Aborted(UPDATE)];
    assert_eq!(reported(&ran), expected);
}

#[test]
fn an_error_that_ends_the_client_is_reported_once() {
    for on_error in [OnError::Abort, OnError::EndRun] {
        for detail in [Detail::default(), ERRORS] {
            let ran = broken().on_error(on_error).detail(detail).run();
            assert_eq!(reported(&ran), [Reported::Aborted(UPDATE)], "{on_error:?} {detail:?}");
        }
    }
}

/// Transactions under way when a client ends the run are cancelled, and their errors aren't
/// reported.
#[test]
fn a_statement_that_the_end_of_the_run_cancels_isnt_reported() {
    let hangs = Fault::Hang { cancellable: true };
    let faults =
        Faults::none().and(On::Update, When::Nth(1, 1), hangs).and(On::Update, When::Nth(0, 3), BROKEN);
    let case = Case::new(TRANSFER).clients(2).faults(faults).time(millis(60_000)).on_error(OnError::EndRun);
    let ran = case.detail(ERRORS).run();
    assert_eq!(ran.ledger.attempts.cut_off, 1, "{:?}", ran.ledger.attempts);
    assert_eq!(reported(&ran), [Reported::Aborted(UPDATE)]);
}

#[test]
fn an_abandoned_transaction_is_always_reported() {
    let abandoned = || Reported::Abandoned(UPDATE, SqlState::UNDEFINED_TABLE);
    assert_eq!(reported(&broken().on_error(OnError::Continue).run()), [abandoned()]);
    let ran = broken().on_error(OnError::Continue).detail(ERRORS).run();
    let expected =
        [Reported::Failed(UPDATE, SqlState::UNDEFINED_TABLE), Reported::Follows(false, 1, None), abandoned()];
    assert_eq!(reported(&ran), expected);
}

#[test]
fn consequences_of_an_error_in_a_pipeline_arent_reported() {
    let script = "\\startpipeline\nBEGIN;\n\\syncpipeline\nUPDATE t SET v = 1;\n\\syncpipeline\n\
        INSERT INTO h VALUES (1);\nEND;\n\\endpipeline\n";
    for (rules, command) in [(Rules::Isobench, 3), (Rules::Pgbench, 7)] {
        let faults = Faults::none().and(On::Update, When::First(1), CONFLICT);
        let case = Case::new(script).rules(rules).protocol(Protocol::Extended).faults(faults);
        let ran = case.detail(ERRORS).run();
        let conflict = Reported::Failed(at(0, 0, command), SqlState::SERIALIZATION_FAILURE);
        assert_eq!(reported(&ran), [conflict, Reported::Follows(true, 1, None)], "{rules:?}");
    }
}

#[test]
fn a_retry_that_the_end_of_the_run_prevents_isnt_reported() {
    let ran = conflicts(9).time(millis(2)).detail(ERRORS).run();
    assert_eq!(reported(&ran), [Reported::Failed(UPDATE, SqlState::SERIALIZATION_FAILURE)]);
}

fn steps(case: Case) -> Vec<Reported> {
    reported(&case.detail(STEPS).run())
}

fn sending(text: &str) -> Reported {
    Reported::Step(ClientStep::Sending(text.to_owned()))
}

fn preparing(statement: usize) -> Reported {
    Reported::Step(ClientStep::Preparing(format!("P_{statement}")))
}

/// The client waits, or receives the end of a reply.
const RECEIVING: Reported = Reported::Step(ClientStep::Receiving);

// The expected steps are those of pgbench 18 with --debug.

#[test]
fn every_step_is_reported_if_asked_for() {
    let script = "\\set v 7\nUPDATE t SET v = :v;\n\\sleep 0 us\nSELECT :v AS x \\gset\n";
    let begin = || [Reported::Step(ClientStep::Script(0)), Reported::Step(ClientStep::Command(0, 0))];
    let sleep = || Reported::Step(ClientStep::Command(0, 2));
    let simple = [
        sending("UPDATE t SET v = 7;"),
        RECEIVING,
        RECEIVING,
        sleep(),
        sending("SELECT 7 AS x "),
        RECEIVING,
        RECEIVING,
    ];
    assert_eq!(steps(Case::new(script)), begin().into_iter().chain(simple).collect::<Vec<_>>());
    let extended = [
        sending("UPDATE t SET v = $1;"),
        RECEIVING,
        RECEIVING,
        sleep(),
        sending("SELECT $1 AS x "),
        RECEIVING,
        RECEIVING,
    ];
    let case = Case::new(script).protocol(Protocol::Extended);
    assert_eq!(steps(case), begin().into_iter().chain(extended).collect::<Vec<_>>());
    let prepared = [
        preparing(0),
        sending("P_0"),
        RECEIVING,
        RECEIVING,
        sleep(),
        preparing(1),
        sending("P_1"),
        RECEIVING,
        RECEIVING,
    ];
    let case = Case::new(script).protocol(Protocol::Prepared);
    assert_eq!(steps(case), begin().into_iter().chain(prepared).collect::<Vec<_>>());
}

#[test]
fn the_steps_of_a_pipeline_are_reported() {
    let script = "\\startpipeline\nUPDATE t SET v = 1;\n\\syncpipeline\nSELECT 1;\n\\endpipeline\n";
    let command = |number| Reported::Step(ClientStep::Command(0, number));
    let ending = |syncs| Reported::Step(ClientStep::EndingPipeline(syncs));
    let expected = [
        Reported::Step(ClientStep::Script(0)),
        command(0),
        preparing(0),
        preparing(1),
        sending("P_0"),
        command(2),
        sending("P_1"),
        command(4),
        RECEIVING,
        RECEIVING,
        RECEIVING,
        ending(2),
        RECEIVING,
        ending(1),
    ];
    assert_eq!(steps(Case::new(script).protocol(Protocol::Prepared)), expected);
}

#[test]
fn variables_are_reported_as_commands_are_sent() {
    let variables = Detail { variables: true, ..Detail::default() };
    let script = "\\set a 1\nSELECT :a;\n\\set a 2\nSELECT :a;\n";
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        let ran = Case::new(script).protocol(protocol).transactions(1).detail(variables).run();
        let sent = ran.events.iter().map(|event| match event {
            ClientEvent::Sends(place, variables) => (place.command, format!("{variables:?}")),
            other => panic!("{other:?}"),
        });
        let sent: Vec<(usize, String)> = sent.collect();
        assert_eq!(sent.iter().map(|(command, _)| *command).collect::<Vec<_>>(), [1, 3], "{protocol:?}");
        assert!(sent[0].1.contains("Int(1)") && sent[1].1.contains("Int(2)"), "{sent:?}");
    }
    assert_eq!(Case::new(script).transactions(1).run().events, []);
}
