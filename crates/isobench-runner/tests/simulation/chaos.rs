//! Random faults, protocols, policies, pacings, ends and interrupts. The ledger always balances and
//! agrees with the server, and no run hangs (all asserted in `harness.rs`).

use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_runner::{Detail, OnError, Pacing, Protocol, RetryPolicy, Rules, StopCondition, Urgency};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, SimulationSettings, When};
use proptest::prelude::*;
use proptest::sample::select;

use crate::harness::{Case, INSERT, TRANSFER, backoff, micros, millis, tries};

/// The protocols in which pipelines are possible.
pub const EXTENDED: &[Protocol] = &[Protocol::Extended, Protocol::Prepared];

/// Scripts with one INSERT each, and the protocols in which they are possible.
pub const SCRIPTS: Scripts = &[
    (TRANSFER, &Protocol::ALL),
    (INSERT, &Protocol::ALL),
    ("BEGIN\\; UPDATE t SET v = 1\\; INSERT INTO h VALUES (1)\\; COMMIT;\n", &[Protocol::Simple]),
    (
        "BEGIN;\nSELECT 1 AS v \\gset\n\\sleep 2 ms\nINSERT INTO h VALUES (:v);\n\
         \\if random(1, 2) = 1\nUPDATE t SET v = 1;\n\\endif\nEND;\n",
        &Protocol::ALL,
    ),
    (
        "\\startpipeline\nBEGIN;\nUPDATE t SET v = 1;\nINSERT INTO h VALUES (1);\nEND;\n\\endpipeline\n",
        EXTENDED,
    ),
    (
        "\\startpipeline\nBEGIN;\nINSERT INTO h VALUES (1);\n\\sleep 1 ms\n\\syncpipeline\n\
         UPDATE t SET v = 1;\n\\syncpipeline\nEND;\n\\sleep 1 ms\n\\endpipeline\n",
        EXTENDED,
    ),
    (
        "\\if :client_id = 0 and random(1, 2) = 1\n\\startpipeline\n\\else\nSELECT 5;\n\
         \\startpipeline\n\\endif\nBEGIN;\nINSERT INTO h VALUES (1);\nEND;\n\\endpipeline\n",
        EXTENDED,
    ),
    ("SELECT 1;\n\\startpipeline\nINSERT INTO h VALUES (1);\nSELECT 1;\n\\endpipeline\n", EXTENDED),
];

/// Scripts and the protocols in which they are possible.
pub type Scripts = &'static [(&'static str, &'static [Protocol])];

pub fn script(scripts: Scripts) -> impl Strategy<Value = (&'static str, Protocol)> {
    select(scripts).prop_flat_map(|(script, protocols)| (Just(script), select(protocols)))
}

fn faults() -> impl Strategy<Value = Faults> {
    let loss = || select(vec![Loss::Closed, Loss::Reset]);
    let fault = prop_oneof![
        6 => Just((On::Statement, Fault::Error(SqlState::SERIALIZATION_FAILURE))),
        4 => Just((On::Commit, Fault::Error(SqlState::SERIALIZATION_FAILURE))),
        2 => Just((On::Insert, Fault::Error(SqlState::DEADLOCK_DETECTED))),
        2 => any::<bool>().prop_map(|committed| (On::Commit, Fault::Unknown { committed })),
        1 => any::<bool>().prop_map(|committed| (On::Commit, Fault::UnknownThenLost { committed })),
        1 => Just((On::Statement, Fault::ErrorThenLost(SqlState::DEADLOCK_DETECTED))),
        2 => Just((On::Statement, Fault::Error(SqlState::UNDEFINED_TABLE))),
        1 => Just((On::Rollback, Fault::Error(SqlState::INTERNAL_ERROR))),
        1 => Just((On::Rollback, Fault::Lost(Loss::Closed))),
        2 => Just((On::Parse, Fault::Error(SqlState::SERIALIZATION_FAILURE))),
        1 => Just((On::Commit, Fault::AnsweredWithRollback)),
        1 => Just((On::Statement, Fault::TERMINATED)),
        1 => Just((On::Statement, Fault::TerminatedAfterReply)),
        1 => loss().prop_map(|loss| (On::Statement, Fault::Lost(loss))),
        2 => loss().prop_map(|loss| (On::Statement, Fault::LostAfter(loss))),
        1 => loss().prop_map(|loss| (On::Commit, Fault::LostAfter(loss))),
        1 => (0_u64..9, loss()).prop_map(|(after, loss)| (On::Statement, Fault::LostWhenIdle(millis(after), loss))),
        2 => any::<bool>().prop_map(|cancellable| (On::Statement, Fault::Hang { cancellable })),
        1 => any::<bool>().prop_map(|cancellable| (On::Commit, Fault::Hang { cancellable })),
        2 => Just((On::Statement, Fault::Notice)),
        2 => Just((On::Statement, Fault::ParameterStatus)),
        2 => Just((On::Parse, Fault::Error(SqlState::UNDEFINED_TABLE))),
        1 => loss().prop_map(|loss| (On::Parse, Fault::Lost(loss))),
        1 => Just((On::Connect, Fault::Error(SqlState(*b"53300")))),
        1 => (0_u64..9, loss()).prop_map(|(after, loss)| (On::Connect, Fault::LostWhenIdle(millis(after), loss))),
        2 => Just((On::Connect, Fault::ParameterStatus)),
    ];
    let rule = (fault, select(vec![0.5, 0.2, 0.05, 0.01]));
    prop::collection::vec(rule, 0..5).prop_map(|rules| {
        rules.into_iter().fold(Faults::none(), |faults, ((on, fault), probability)| {
            faults.and(on, When::Chance(probability), fault)
        })
    })
}

fn policy() -> impl Strategy<Value = RetryPolicy> {
    prop_oneof![
        Just(tries(1)),
        Just(tries(3)),
        Just(RetryPolicy::UNLIMITED),
        Just(backoff("fixed:2ms")),
        Just(backoff("exponential:base=1ms,factor=3,max=80ms,jitter=full")),
    ]
}

fn pacing() -> impl Strategy<Value = Pacing> {
    prop_oneof![
        3 => Just(Pacing::Unpaced),
        1 => Just(Pacing::ThinkTime(millis(3))),
        1 => Just(Pacing::Rate(500.0)),
        1 => Just(Pacing::Rate(5000.0)),
    ]
}

/// A number of transactions, or a time. A server that hangs is left only at the end of the time or
/// on request.
fn stop() -> impl Strategy<Value = StopCondition> {
    prop_oneof![
        (0_u64..12).prop_map(StopCondition::Transactions),
        (0_u64..60).prop_map(|time| StopCondition::Time(millis(time))),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    select(vec![Rules::Isobench, Rules::Pgbench])
}

/// The time it takes to open a session, if each transaction has its own.
fn connecting() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((0_u64..3_000).prop_map(Duration::from_micros))
}

fn urgency() -> impl Strategy<Value = Urgency> {
    select(vec![Urgency::Soon, Urgency::Now])
}

prop_compose! {
    fn network()(
        seed in any::<u64>(),
        fastest in 50_000_u64..2_000_000,
        spread in 0_u64..3_000_000,
        pieces in prop::option::of(1_usize..40),
        short_writes in prop::option::of(1_usize..60),
        receiving in prop_oneof![Just(0), 0_u64..300],
    ) -> SimulationSettings {
        let latency = fastest..=fastest + spread;
        SimulationSettings {
            seed,
            latency,
            receiving: micros(receiving),
            pieces,
            short_writes,
            ..SimulationSettings::default()
        }
    }
}

prop_compose! {
    /// Cases of any kind, with these scripts.
    pub fn cases(scripts: Scripts)(
        (script, protocol) in script(scripts),
        clients in 1_usize..6,
        settings in network(),
        (faults, retry, pacing) in (faults(), policy(), pacing()),
        limit in prop::option::of((1_u64..40).prop_map(millis)),
        on_error in select(vec![OnError::Abort, OnError::Continue, OnError::EndRun]),
        (rules, connecting) in (rules(), connecting()),
        (errors, steps, asks) in (any::<bool>(), any::<bool>(), any::<bool>()),
        series in prop::option::of((1_u64..20_000).prop_map(micros)),
        stop in stop(),
        grace in 0_u64..50,
        interrupts in prop::collection::vec(((0_u64..80_000).prop_map(Duration::from_micros), urgency()), 0..3),
    ) -> Case {
        let mut case = Case::new(script).clients(clients).retry(retry).pacing(pacing).faults(faults);
        case.spec.protocol = protocol;
        case.spec.latency_limit = limit;
        case = case.on_error(on_error).rules(rules).detail(Detail { errors, steps, variables: false });
        if let Some(connecting) = connecting {
            case = case.connect_each(connecting);
        }
        case.spec.seed = settings.seed;
        case.spec.series = series;
        case.spec.grace = millis(grace);
        case.asks = asks;
        case.stop = stop;
        case.interrupts = interrupts;
        // With a server that hangs, or endless conflicts, a number of transactions may never be
        // reached.
        case.interrupts.push((millis(5_000), Urgency::Now));
        let (connecting, faults) = (case.settings.connecting, case.settings.faults);
        case.settings = SimulationSettings { connecting, faults, time_limit: Duration::from_secs(20), ..settings };
        case
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_account_balances(case in cases(SCRIPTS)) {
        let spec = case.spec.clone();
        let stop = case.stop;
        let ran = case.run();
        // Every client that ends is reported, except those still running at the end of the run.
        prop_assert!(ran.aborts().len() <= ran.outcome.aborted);
        if spec.on_error == OnError::EndRun && !ran.aborts().is_empty() {
            prop_assert!(ran.outcome.aborted > 0 && !ran.outcome.is_complete());
        }
        if let StopCondition::Transactions(count) = stop
            && ran.outcome.is_complete()
        {
            prop_assert_eq!(ran.ledger.transactions.total, count * spec.clients as u64);
        }
    }

    #[test]
    fn conflicts_alone_end_no_client(
        seed in any::<u64>(),
        probability in 0.0..0.9_f64,
        (script, protocol) in script(SCRIPTS),
        retry in policy(),
        (rules, connecting) in (rules(), connecting()),
    ) {
        let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
        let mut case = Case::new(script)
            .clients(4)
            .retry(retry)
            .rules(rules)
            .time(millis(200))
            .faults(Faults::none().and(On::Statement, When::Chance(probability), conflict));
        if let Some(connecting) = connecting {
            case = case.connect_each(connecting);
        }
        case.spec.protocol = protocol;
        case.settings.seed = seed;
        case.settings.latency = 10_000..=4_000_000;
        let ran = case.run();
        prop_assert!(ran.outcome.is_complete());
        prop_assert_eq!(ran.ledger.transactions.committed, ran.truth.committed_rows);
        prop_assert_eq!((ran.ledger.attempts.ambiguous, ran.ledger.attempts.errored), (0, 0));
    }
}
