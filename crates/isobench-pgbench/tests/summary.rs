//! The summaries of invented runs in the layouts of all versions, compared with
//! `golden/summary.txt`.
//!
//! Each layout was confirmed by running pgbench 15, 16 and 18 with the same options.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::PartitionMethod;
use isobench_pgbench::Version;
use isobench_pgbench::summary::Summary;
use isobench_runner::{
    CommandRecord, ErrorClass, Job, Pacing, RetryPolicy, RunOutcome, RunSpec, RunWorkload, ScriptRecord,
    StopCondition,
};
use isobench_script::{Mix, Symbols, Variables, Weighted, parse};
use isobench_testkit::golden;

/// Options that affect the report, but not the run.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    failures_detailed: bool,
    per_command: bool,
    progress: bool,
    partitions: Option<(PartitionMethod, u64)>,
}

/// An invented run.
struct Case {
    name: &'static str,
    spec: RunSpec,
    stop: StopCondition,
    asked: Asked,
    /// Weights and results of the scripts.
    scripts: Vec<(u64, ScriptRecord)>,
}

/// Transactions by their end.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    committed: u64,
    serialization: u64,
    deadlock: u64,
    abandoned: u64,
    skipped: u64,
    /// Transactions retried, and retries.
    retried: (u64, u64),
    late: u64,
}

const MS: u64 = 1_000_000;

/// The record of a script with two commands, whose transactions take 1 ms and 3 ms in turn, and
/// start half a ms late.
fn record(ends: Ends) -> ScriptRecord {
    let mut record = ScriptRecord::default();
    for number in 0..ends.committed {
        record.latency.record(if number % 2 == 0 { MS } else { 3 * MS });
        record.lag.record(MS / 2);
    }
    let transactions = &mut record.ledger.transactions;
    transactions.committed = ends.committed;
    transactions.given_up = ends.serialization + ends.deadlock;
    transactions.errored = ends.abandoned;
    transactions.skipped = ends.skipped;
    record.deadlock_failures = ends.deadlock;
    record.abandoned = ends.abandoned;
    record.retried_transactions = ends.retried.0;
    record.retries = ends.retried.1;
    record.ledger.late = ends.late;
    record.commands = vec![CommandRecord::default(); 2];
    for _ in 0..ends.committed {
        record.commands[0].latency.record(1_000);
        record.commands[1].latency.record(2 * MS);
    }
    record.commands[1].failures = ends.serialization + ends.deadlock + ends.abandoned;
    record.commands[1].retries = ends.retried.1;
    record
}

fn ends(committed: u64) -> Ends {
    Ends { committed, ..Ends::default() }
}

fn spec() -> RunSpec {
    RunSpec { clients: 2, workers: 2, ..RunSpec::default() }
}

fn paced() -> RunSpec {
    RunSpec { pacing: Pacing::Rate(1000.0), ..spec() }
}

fn limited(mut spec: RunSpec) -> RunSpec {
    spec.latency_limit = Some(Duration::from_micros(2_500));
    spec
}

fn tries(mut spec: RunSpec, most: u32) -> RunSpec {
    spec.retry = RetryPolicy { max_tries: NonZeroU32::new(most), ..RetryPolicy::NEVER };
    spec
}

/// A run of one script with ten transactions for each client.
fn case(name: &'static str, spec: RunSpec, ends: Ends) -> Case {
    let scripts = vec![(1, record(ends))];
    Case { name, spec, stop: StopCondition::Transactions(10), asked: Asked::default(), scripts }
}

fn asked(case: Case, asked: Asked) -> Case {
    Case { asked, ..case }
}

fn cases() -> Vec<Case> {
    let detailed = Asked { failures_detailed: true, ..Asked::default() };
    let commands = Asked { per_command: true, ..Asked::default() };
    let everything = Asked { failures_detailed: true, per_command: true, progress: true, partitions: None };
    let some = Ends { serialization: 3, deadlock: 2, ..ends(15) };
    let all_failed = Ends { serialization: 20, retried: (20, 40), ..ends(0) };
    let mixed = Ends { serialization: 2, deadlock: 1, skipped: 3, retried: (4, 6), late: 2, ..ends(8) };
    let several = |case: Case, more: &[(u64, Ends)]| {
        let more = more.iter().map(|(weight, ends)| (*weight, record(*ends)));
        Case { scripts: case.scripts.into_iter().chain(more).collect(), ..case }
    };
    vec![
        case("plain", spec(), ends(20)),
        Case { stop: StopCondition::Time(Duration::from_secs(2)), ..case("for a time", spec(), ends(20)) },
        asked(
            case("partitions", spec(), ends(20)),
            Asked { partitions: Some((PartitionMethod::Hash, 3)), ..Asked::default() },
        ),
        asked(case("with progress", spec(), ends(20)), Asked { progress: true, ..Asked::default() }),
        case("failures", spec(), some),
        asked(case("failures in detail", spec(), some), detailed),
        asked(case("other failures", spec(), Ends { abandoned: 4, ..some }), detailed),
        case("unlimited tries", tries(limited(spec()), 0), Ends { retried: (3, 5), late: 10, ..ends(20) }),
        asked(case("commands", spec(), ends(20)), commands),
        asked(case("commands with retries", tries(spec(), 3), Ends { retried: (1, 2), ..some }), commands),
        case("rate", paced(), ends(20)),
        asked(case("rate, limit and retries", tries(limited(paced()), 3), mixed), everything),
        case(
            "a connection each",
            RunSpec { connect_each: true, ..spec() },
            Ends { serialization: 2, ..ends(18) },
        ),
        asked(case("all failed", tries(spec(), 3), all_failed), everything),
        asked(case("all failed, paced", tries(limited(paced()), 3), all_failed), everything),
        asked(case("all skipped", limited(paced()), Ends { skipped: 20, ..ends(0) }), commands),
        asked(case("nothing", tries(spec(), 2), ends(0)), everything),
        asked(
            several(case("scripts", spec(), ends(15)), &[(0, ends(0)), (3, some)]),
            Asked { per_command: true, ..detailed },
        ),
        asked(
            several(
                case("scripts, paced", tries(limited(paced()), 2), mixed),
                &[(2, Ends { skipped: 4, ..ends(0) }), (1, all_failed), (1, ends(0))],
            ),
            everything,
        ),
        asked(several(case("scripts, nothing", spec(), ends(0)), &[(1, ends(0))]), commands),
    ]
}

fn job(case: &Case) -> Job {
    let mut symbols = Symbols::default();
    let scripts = case.scripts.iter().enumerate().map(|(index, (weight, _))| {
        let text = "\\set x random(1, 2)\nSELECT\n  :x;\n";
        let script = parse(&format!("script{index}.sql"), text, &mut symbols).expect("a script");
        Weighted { script, weight: *weight }
    });
    let mix = Mix::new(scripts.collect()).expect("a mix");
    let variables = Variables::new(&symbols);
    let workload = RunWorkload { mix, symbols, variables };
    Job::new(case.spec.clone(), workload, Box::new(|_| ErrorClass::Other))
}

fn render(case: &Case, version: Version) -> String {
    let run = RunOutcome {
        idle: Duration::ZERO,
        turns: 0,
        event_loop: None,
        elapsed: Duration::from_millis(50),
        scripts: case.scripts.iter().map(|(_, record)| record.clone()).collect(),
        conflicts: Vec::new(),
        further_errors: Vec::new(),
        aborted: 0,
        aborted_in: None,
        interrupted: false,
        reconnecting: Duration::from_millis(30),
        series: None,
        lost_sessions: 0,
        away: 0,
        ended: Vec::new(),
        load: Vec::new(),
    };
    let Asked { failures_detailed, per_command, progress, partitions } = case.asked;
    let summary = Summary {
        version,
        job: &job(case),
        run: &run,
        stop: case.stop,
        scale: 7,
        partitions,
        connecting: Duration::from_micros(4_321),
        failures_detailed,
        per_command,
        progress,
    };
    summary.render()
}

/// The summaries of a run in all versions, equal ones together.
fn section(case: &Case) -> String {
    let mut layouts: Vec<(Vec<u32>, String)> = Vec::new();
    for version in Version::ALL {
        let text = render(case, version);
        match layouts.last_mut().filter(|(_, last)| *last == text) {
            Some((versions, _)) => versions.push(version.number()),
            None => layouts.push((vec![version.number()], text)),
        }
    }
    let mut out = format!("# {}\n", case.name);
    for (versions, text) in layouts {
        let versions: Vec<String> = versions.iter().map(u32::to_string).collect();
        write!(out, "\n## {}\n\n{text}", versions.join(" ")).expect("a string takes everything");
    }
    out
}

#[test]
fn every_version_has_its_layout() {
    let actual = cases().iter().map(section).collect::<Vec<_>>().join("\n");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/summary.txt");
    golden::expect(file, &actual);
}
