//! Conversion of the runner's outcome to a round of the result document.
//!
//! Not here: measuring (`cell.rs`, `commands/run.rs`).

use std::time::Duration;

use isobench_result::{
    BranchRound, ClientLoad, Conflict, Latency, MachineRound, Round, ScriptRound, Series, UsedEventLoop,
};
use isobench_runner::{ConflictCount, Job, RunOutcome, ScriptRecord};
use isobench_script::Weighted;
use isobench_stats::LatencyHistogram;
use rustix::time::{ClockId, clock_gettime};

use crate::design::count;
use crate::site::Site;

/// CPU time of this process so far, user and system, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the round of a run, with the errors of its clients and the CPU time of this process
/// during the run.
pub fn round(
    job: &Job,
    site: &Site,
    run: &RunOutcome,
    number: u32,
    errors: Vec<String>,
    cpu_s: f64,
) -> Round {
    let itemised = |counts: &[ConflictCount]| itemised(job, site, counts);
    let ledger = run.ledger();
    let mut round =
        Round::from_ledger(number, &ledger, &run.latency(), run.elapsed, itemised(&run.conflicts));
    round.scripts = scripts(job, run);
    round.branches = branches(job, run);
    round.further_errors = itemised(&run.further_errors);
    round.complete = run.is_complete();
    round.late = job.spec().latency_limit.map(|_| ledger.late);
    round.errors = errors;
    round.client_cpu_s = Some(cpu_s);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    round.client = Some(load(run, cpu_s, cores));
    round.event_loop = run
        .event_loop
        .as_ref()
        .map(|chosen| UsedEventLoop { name: chosen.event_loop.to_string(), reason: chosen.reason.clone() });
    round.series = run.series.as_ref().map(series);
    if let Err(error) = run.check() {
        // A defect of isobench: the round is kept for debugging, but excluded from the results.
        round.complete = false;
        round.errors.insert(0, error.to_string());
    }
    round
}

/// The counts of each script, if there are several.
fn scripts(job: &Job, run: &RunOutcome) -> Vec<ScriptRound> {
    let scripts = job.workload().mix.scripts();
    if scripts.len() < 2 {
        return Vec::new();
    }
    let counts = |(weighted, record): (&Weighted, &ScriptRecord)| ScriptRound {
        name: weighted.script.name.clone(),
        transactions: record.ledger.transactions,
        conflicts: record.ledger.conflicts,
        latency_ms: Latency::figures(&record.latency),
        levels_named: std::collections::BTreeMap::new(),
    };
    scripts.iter().zip(&run.scripts).map(counts).collect()
}

/// The conditions of the scripts.
fn branches(job: &Job, run: &RunOutcome) -> Vec<BranchRound> {
    let scripts = job.workload().mix.scripts().iter().map(|weighted| &weighted.script).zip(&run.scripts);
    let of_script = scripts.flat_map(|(script, record)| {
        record.branches.iter().map(move |branch| BranchRound {
            script: script.name.clone(),
            line: script.commands.get(branch.command).map_or(0, |command| command.line),
            evaluated: branch.evaluated,
            held: branch.held,
            since_held: branch.since_held,
            since_failed: branch.since_failed,
        })
    });
    of_script.collect()
}

fn series(series: &isobench_runner::Series) -> Series {
    Series {
        bin_s: series.bin.as_secs_f64(),
        committed: series.bins.iter().map(|bin| bin.committed).collect(),
        attempts: series.bins.iter().map(|bin| bin.attempts).collect(),
        conflicts: series.bins.iter().map(|bin| bin.conflicts).collect(),
        latency_sum_ms: series
            .bins
            .iter()
            .map(|bin| Duration::from_nanos(bin.latency_ns).as_secs_f64() * 1e3)
            .collect(),
    }
}

/// The load of a program that has run clients on this many processors.
pub fn load(run: &RunOutcome, cpu_s: f64, cores: usize) -> ClientLoad {
    let cores = cores.max(1) as f64;
    let mut lag = LatencyHistogram::new();
    for worker in &run.load {
        lag.merge(&worker.lag);
    }
    let most = |share: &dyn Fn(&isobench_runner::WorkerLoad) -> Option<f64>| {
        run.load.iter().filter_map(share).reduce(f64::max)
    };
    let seconds = run.elapsed.as_secs_f64();
    ClientLoad {
        workers: count(run.load.len()),
        busiest: most(&|worker| Some(worker.busy_share())).unwrap_or(0.0),
        starved: most(&isobench_runner::WorkerLoad::starved_share),
        share_of_cores: if seconds > 0.0 { (cpu_s / seconds / cores).min(1.0) } else { 0.0 },
        lag_mean_ms: lag.mean_ms(),
        lag_p99_ms: lag.percentile(99.0),
        lag_max_ms: lag.max_ms(),
    }
}

/// Conflicts with the places of their commands in the scripts.
pub fn itemised(job: &Job, site: &Site, counts: &[ConflictCount]) -> Vec<Conflict> {
    counts.iter().map(|count| item(job, site, count)).collect()
}

fn item(job: &Job, site: &Site, conflict: &ConflictCount) -> Conflict {
    let script = &job.workload().mix.scripts()[conflict.script].script;
    let command = script.commands.get(conflict.command);
    Conflict {
        sqlstate: conflict.sqlstate.to_string(),
        command: command
            .map_or_else(String::new, |command| site.as_alone(command.text.trim_end()).into_owned()),
        script: Some(script.name.clone()),
        line: command.map(|command| command.line),
        reason: conflict.reason.to_string(),
        object: conflict.object.as_ref().map(ToString::to_string),
        count: conflict.count,
    }
}

/// Adds the rows of several machines to a round of all their clients.
pub fn note_machines(round: &mut Round, machines: Vec<MachineRound>) {
    if machines.is_empty() {
        return;
    }
    round.client_cpu_s = Some(machines.iter().map(|machine| machine.cpu_s).sum());
    if let Some(client) = &mut round.client {
        client.share_of_cores =
            machines.iter().map(|machine| machine.load.share_of_cores).fold(0.0, f64::max);
    }
    round.machines = machines;
}
