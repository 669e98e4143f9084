//! Examples of what happened to a server, with every outcome for the commits that clients were told of.

use isobench_isolation::Level;
use isobench_result::{
    BackgroundWork, Cell, ClientLoad, Document, FaultEvent, FaultRound, MachineRound, Round, Series,
    Settlement, StandbyLag,
};

use super::{Story, base, cell};

/// Half seconds of a round of 2.5 s, of which the third has a crash.
const BINS: [u64; 5] = [600, 610, 40, 590, 620];

/// A value of `synchronous_commit`, and what became of its commits.
fn settled(setting: &str, lost: u64, promised: Option<bool>, withheld: Option<&str>) -> Cell {
    let acknowledged: u64 = BINS.iter().sum();
    let settlement = Settlement {
        acknowledged,
        found: acknowledged - lost,
        lost,
        lost_before_s: (lost > 0).then_some(0.012),
        unacknowledged: 8,
        kept: 3,
        failed: 5,
        promised,
        settings: format!("synchronous_commit={setting}"),
        withheld: withheld.map(str::to_owned),
        ..Settlement::default()
    };
    let event = FaultEvent {
        fault: "crash@1".to_owned(),
        at_s: Some(1.002),
        back_s: Some(0.31),
        silent_s: Some(0.42),
        first_commit_s: Some(0.41),
        problem: None,
    };
    let faults = FaultRound { faults: vec![event], lost_sessions: 8, away: 0, settlement };
    let story =
        Story { committed: acknowledged, ambiguous: 8, errored: 5, latency_us: 8_000, ..Story::default() };
    let mut round = Round { faults: Some(faults), ..story.round(1, 2) };
    round.series = Some(Series {
        bin_s: 0.5,
        committed: BINS.into(),
        attempts: BINS.map(|committed| committed + 2).into(),
        conflicts: vec![0; BINS.len()],
        latency_sum_ms: BINS.map(|committed| committed as f64 * 8.0).into(),
    });
    round.seconds = 2.5;
    let varied = [("setting:synchronous_commit", setting), ("fault", "crash@1")];
    let varied = varied.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Cell { varied, rounds: vec![round], ..cell(Level::ReadCommitted) }
}

/// A crash with four values of `synchronous_commit`: lost as permitted, kept, lost in spite of the promise
/// and not known.
pub fn faults() -> Document {
    let mut document = base();
    document.plan.levels = Some(vec![Level::ReadCommitted]);
    document.plan.rounds = Some(1);
    document.plan.time = Some(2.5);
    document.plan.vary =
        Some(vec!["setting:synchronous_commit=off,local,remote_write,on".parse().expect("it has the form")]);
    document.plan.fault = Some(vec!["crash@1".parse().expect("a fault")]);
    document.cells = vec![
        settled("off", 23, Some(false), None),
        settled("local", 0, Some(true), None),
        settled("remote_write", 2, Some(true), None),
        settled("on", 1, None, Some("1 row is of no attempt of this run")),
    ];
    document
}

/// Three machines, of which the last is slow.
pub fn machines() -> Document {
    let mut document = base();
    document.plan.rounds = Some(1);
    let machine = |(rank, committed, latency_ms): (u32, u64, f64)| MachineRound {
        rank,
        address: format!("10.0.0.{}:7001", rank + 1),
        host: format!("load{rank}"),
        clients: 4,
        attempts: committed + 5,
        committed,
        tps: Some(committed as f64 / 5.0),
        latency_mean_ms: Some(latency_ms),
        latency_p99_ms: Some(latency_ms * 3.0),
        clock_within_ms: 0.2 * f64::from(rank),
        late_ms: 0.04,
        cpu_s: 0.5,
        load: ClientLoad { workers: 1, busiest: 0.2, ..ClientLoad::default() },
    };
    let measured = |level| {
        let story = Story { committed: 2500, latency_us: 8_000, ..Story::default() };
        let machines = [(0, 1050, 4.8), (1, 1000, 5.0), (2, 450, 11.0)].map(machine).to_vec();
        Cell { rounds: vec![Round { machines, ..story.round(1, 5) }], ..cell(level) }
    };
    document.cells = document.plan.levels().iter().map(|level| measured(*level)).collect();
    document
}

/// Readers on a standby that lags behind, and a vacuum beside them.
pub fn standby() -> Document {
    let mut document = base();
    document.plan.levels = Some(vec![Level::ReadCommitted, Level::RepeatableRead]);
    document.plan.rounds = Some(1);
    document.plan.readers = Some(4);
    document.plan.standby = Some(vec!["async".parse().expect("a way to follow")]);
    let lag = StandbyLag {
        samples: 40,
        bytes_mean: 12_345.0,
        bytes_max: 98_304.0,
        replay_ms_mean: Some(1.4),
        replay_ms_max: Some(9.5),
    };
    let work = BackgroundWork { kind: "vacuum".to_owned(), times: 70, mean_s: Some(0.06), problem: None };
    let measured = |level| {
        let story = Story { committed: 2000, latency_us: 20_000, ..Story::default() };
        let round = Round { standby_lag: Some(lag), background: Some(work.clone()), ..story.round(1, 5) };
        Cell { rounds: vec![round], ..cell(level) }
    };
    document.cells = document.plan.levels().iter().map(|level| measured(*level)).collect();
    document
}
