//! The flags of cells whose numbers are less certain than they look: one function for each kind.

use std::collections::BTreeSet;

use isobench_stats::{Drift, drift, drift_of_rounds, is_bimodal, start_of_rounds, transient};

use crate::branches::used_up;
use crate::document::{Cell, Document, Flag, FlagKind, MachineRound, Round};
use crate::numbers::{counted, percent, short};

/// A worker busier than this share of the time may be what limits the rate.
const BUSY: f64 = 0.9;

/// A larger share of the processors than this is missing to a server on the same machine.
const SHARE: f64 = 0.25;

/// A drift of less than this over a round changes no conclusion.
const DRIFT: f64 = 0.05;

/// Clients that do less than this part of what others do are slow.
const UNEVEN: f64 = 0.7;

/// A start later than this share of the time is late.
const LATE: f64 = 0.01;

/// A rate that is reached to this share counts as reached.
const REACHED: f64 = 0.95;

/// A deadlock's error code (PostgreSQL: appendix Error Codes, class 40).
const DEADLOCK: &str = "40P01";

/// CockroachDB's counter of transactions that ran at a higher level than the one they asked for (its
/// documentation, "Available metrics").
const UPGRADED: &str = "crdb_internal.node_metrics.sql.txn.upgraded_iso_level.count";

/// A standstill takes at least this many seconds.
const STILL: f64 = 1.0;

/// A standstill is this many times longer than commits lie apart on average: with commits at random
/// instants one pause in half a billion is.
const STILL_COMMITS: f64 = 20.0;

/// A standstill is this many times longer than a transaction usually takes.
const STILL_LATENCIES: f64 = 3.0;

/// The flags of a cell. `bins` are the rates over time of those rounds that have any.
pub fn flags(document: &Document, cell: &Cell, rounds: &[&Round], bins: &[Vec<f64>]) -> Vec<Flag> {
    [
        level_contradicted(rounds),
        level_upgraded(rounds),
        not_warm(document, rounds),
        unsteady_start(bins),
        drifts(bins),
        two_speeds(bins),
        client_bound(rounds),
        client_share(document, rounds),
        counts_differ(rounds),
        uneven_machines(rounds),
        behind_schedule(cell, rounds),
        stood_still(document, rounds),
        used_up(rounds, cell.jobs),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn flag(kind: FlagKind, text: String) -> Flag {
    Flag { kind, text }
}

/// Each test has five false alarms in a hundred. Two in five rounds, or the only one, are more than
/// that.
fn often(alarms: usize, rounds: usize) -> bool {
    alarms * 5 >= rounds * 2 && alarms >= rounds.min(2) && alarms > 0
}

fn of_rounds(some: usize, all: usize) -> String {
    format!("{some} of {}", counted(all as u64, "round"))
}

fn level_contradicted(rounds: &[&Round]) -> Option<Flag> {
    let contradicted: Vec<&Round> =
        rounds.iter().copied().filter(|round| !round.contradictions.is_empty()).collect();
    let first = contradicted.first()?.contradictions.join("; ");
    let text = format!(
        "in {} {first}; so the row isn't what its name says. Scripts, and functions that they \
         call, must leave the level alone",
        of_rounds(contradicted.len(), rounds.len())
    );
    Some(flag(FlagKind::LevelContradicted, text))
}

fn level_upgraded(rounds: &[&Round]) -> Option<Flag> {
    let upgraded = |round: &&&Round| {
        let counters = round.server.iter().flat_map(|server| &server.counters);
        counters.filter(|counter| counter.name == UPGRADED).map(|counter| counter.change).sum::<f64>() > 0.0
    };
    let some = rounds.iter().filter(upgraded).count();
    (some > 0).then(|| {
        let text = format!(
            "in {} the server counted transactions that it ran at a higher level than the one they asked for \
             (sql.txn.upgraded_iso_level.count, of all clients of the node); if these are the row's, it isn't what its \
             name says",
            of_rounds(some, rounds.len())
        );
        flag(FlagKind::LevelUpgraded, text)
    })
}

fn not_warm(document: &Document, rounds: &[&Round]) -> Option<Flag> {
    let looked: Vec<bool> =
        rounds.iter().filter_map(|round| round.warmup.as_ref()?.steady).map(|steady| !steady).collect();
    let cold = looked.iter().filter(|cold| **cold).count();
    often(cold, looked.len()).then(|| {
        let longest = document.plan.max_warmup();
        let text = format!(
            "in {} the rate wasn't steady when the longest warm-up ({} s) was over; give it more (--max-warmup)",
            of_rounds(cold, looked.len()),
            short(longest)
        );
        flag(FlagKind::NotWarm, text)
    })
}

/// True if no round tells by itself, such as one of ten slices: then they are judged together.
fn too_short(bins: &[Vec<f64>]) -> bool {
    bins.iter().all(|bins| drift(bins).is_none())
}

/// The drift of rounds that are judged together, without their start.
fn later_drift(bins: &[Vec<f64>]) -> Option<Drift> {
    let later: Vec<Vec<f64>> = bins.iter().map(|bins| bins.iter().skip(1).copied().collect()).collect();
    drift_of_rounds(&later).filter(|drift| drift.significant)
}

fn unsteady_start(bins: &[Vec<f64>]) -> Option<Flag> {
    if too_short(bins) {
        // A drift moves the start, too.
        let start = start_of_rounds(bins).filter(|start| start.significant && later_drift(bins).is_none())?;
        let text = format!(
            "over {}, throughput at the start was {} {} the rest; use a longer --warmup",
            counted(bins.len() as u64, "round"),
            percent(start.relative.abs()),
            if start.relative < 0.0 { "below" } else { "above" }
        );
        return Some(flag(FlagKind::Transient, text));
    }
    // Too short a series shows neither.
    let judged: Vec<Option<usize>> =
        bins.iter().filter(|bins| drift(bins).is_some()).map(|bins| transient(bins)).collect();
    let unsteady = judged.iter().filter(|cut| **cut != Some(0)).count();
    often(unsteady, judged.len()).then(|| {
        let text = format!(
            "in {} throughput was not yet steady when measuring started; use a longer --warmup or --time",
            of_rounds(unsteady, judged.len())
        );
        flag(FlagKind::Transient, text)
    })
}

fn drifts(bins: &[Vec<f64>]) -> Option<Flag> {
    if too_short(bins) {
        let drift = later_drift(bins)?;
        let text = format!(
            "over {}, the rate {} by {} on average from start to end, so the mean depends on how long \
             is measured",
            counted(bins.len() as u64, "round"),
            if drift.relative < 0.0 { "fell" } else { "rose" },
            percent(drift.relative.abs())
        );
        return Some(flag(FlagKind::Drift, text));
    }
    let judged: Vec<_> = bins.iter().filter_map(|bins| drift(bins)).collect();
    for (word, sign) in [("fell", -1.0), ("rose", 1.0)] {
        let same: Vec<f64> = judged
            .iter()
            .filter(|drift| drift.significant && drift.relative * sign >= DRIFT)
            .map(|drift| drift.relative.abs())
            .collect();
        if often(same.len(), judged.len()) {
            let mean = same.iter().sum::<f64>() / same.len() as f64;
            let text = format!(
                "in {} the rate {word} from start to end, by {} on average, so the mean depends on \
                 how long is measured",
                of_rounds(same.len(), judged.len()),
                percent(mean)
            );
            return Some(flag(FlagKind::Drift, text));
        }
    }
    None
}

fn two_speeds(bins: &[Vec<f64>]) -> Option<Flag> {
    if too_short(bins) {
        let text = "over all rounds the rate had two levels (a checkpoint, or another program?), so the \
                    mean is neither";
        return (is_bimodal(&bins.concat()) == Some(true)).then(|| flag(FlagKind::Bimodal, text.to_owned()));
    }
    let judged: Vec<bool> = bins.iter().filter_map(|bins| is_bimodal(bins)).collect();
    let two = judged.iter().filter(|two| **two).count();
    often(two, judged.len()).then(|| {
        let text = format!(
            "in {} the rate had two levels (a checkpoint, or another program?), so the mean is neither",
            of_rounds(two, judged.len())
        );
        flag(FlagKind::Bimodal, text)
    })
}

/// The middle of some figures.
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// The rounds in which anything was committed. Of the others the load of isobench says nothing: it
/// looks for a transaction to run, or for the end.
fn working<'r>(rounds: &'r [&Round]) -> impl Iterator<Item = &'r Round> {
    rounds.iter().copied().filter(|round| round.transactions.committed > 0)
}

fn client_bound(rounds: &[&Round]) -> Option<Flag> {
    let busy = median(working(rounds).filter_map(|round| Some(round.client?.busiest)).collect())?;
    (busy >= BUSY).then(|| {
        let text = format!(
            "a worker of isobench was busy {} of the time, so the number may be the client's; use \
             more workers (--jobs) or another machine",
            percent(busy)
        );
        flag(FlagKind::ClientBound, text)
    })
}

fn client_share(document: &Document, rounds: &[&Round]) -> Option<Flag> {
    let share = median(working(rounds).filter_map(|round| Some(round.client?.share_of_cores)).collect())?;
    (document.client.same_machine && share >= SHARE).then(|| {
        let text =
            format!("isobench itself used {} of the processors that the server runs on, too", percent(share));
        flag(FlagKind::ClientShare, text)
    })
}

fn counts_differ(rounds: &[&Round]) -> Option<Flag> {
    let compared =
        || rounds.iter().filter_map(|round| round.server.as_ref()).flat_map(|server| &server.comparison);
    let first = compared().find(|count| !count.agrees)?;
    let reason =
        if first.explanation.is_empty() { String::new() } else { format!(" ({})", first.explanation) };
    let text = format!(
        "the server counted {} {}, we counted {}{reason}; another session may have worked in this database",
        first.servers, first.what, first.ours
    );
    Some(flag(FlagKind::CountsDiffer, text))
}

/// A machine whose clients did much less than those of the others, or started late.
fn uneven_machines(rounds: &[&Round]) -> Option<Flag> {
    let machines = || rounds.iter().flat_map(|round| &round.machines);
    let ranks: BTreeSet<u32> = machines().map(|machine| machine.rank).collect();
    let of_rank = |rank: u32| machines().filter(move |it| it.rank == rank);
    let rate = |machine: &MachineRound| Some(machine.tps? / f64::from(machine.clients.max(1)));
    let of_one = |rank: &u32| Some((*rank, median(of_rank(*rank).filter_map(rate).collect())?));
    let rates: Vec<(u32, f64)> = ranks.iter().filter_map(of_one).collect();
    let usual = median(rates.iter().map(|(_, rate)| *rate).collect())?;
    let (slowest, least) = rates.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let name = |rank| of_rank(rank).map(|it| it.address.as_str()).next().unwrap_or_default().to_owned();
    if least < UNEVEN * usual {
        let latency =
            |rank| median(of_rank(rank).filter_map(|it| it.latency_mean_ms).collect()).unwrap_or(0.0);
        let all = median(ranks.iter().copied().map(latency).collect()).unwrap_or(0.0);
        let text = format!(
            "each client of rank {slowest} ({}) committed {} × as much as those of the middle machine, with a mean \
             latency of {} ms against {} ms: that machine is slow, or far from the server",
            name(slowest),
            short(least / usual),
            short(latency(slowest)),
            short(all)
        );
        return Some(flag(FlagKind::UnevenMachines, text));
    }
    let late = |round: &&Round| {
        let latest = round.machines.iter().max_by(|one, other| one.late_ms.total_cmp(&other.late_ms))?;
        (latest.late_ms > LATE * round.seconds * 1e3).then_some((latest.rank, latest.late_ms))
    };
    let (rank, late_ms) = rounds.iter().find_map(late)?;
    let text = format!(
        "rank {rank} ({}) started {} ms after the others, more than a hundredth of the time: that machine is busy",
        name(rank),
        short(late_ms)
    );
    Some(flag(FlagKind::UnevenMachines, text))
}

fn behind_schedule(cell: &Cell, rounds: &[&Round]) -> Option<Flag> {
    let wanted = cell.rate?;
    let started = |round: &&Round| {
        let ran = round.transactions.total.saturating_sub(round.transactions.skipped);
        Some(ran as f64 / round.seconds).filter(|rate| rate.is_finite())
    };
    let reached = median(rounds.iter().filter_map(started).collect())?;
    (reached < REACHED * wanted).then(|| {
        let text = format!(
            "{} transactions per second were wanted, {} started: the latency is that of a growing queue",
            short(wanted),
            short(reached)
        );
        flag(FlagKind::BehindSchedule, text)
    })
}

/// A single round that stood still is one too many: chance doesn't do that.
fn stood_still(document: &Document, rounds: &[&Round]) -> Option<Flag> {
    let undisturbed = rounds.iter().filter(|round| round.faults.is_none());
    let still: Vec<(&Round, f64)> =
        undisturbed.filter_map(|round| Some((*round, standstill(document.plan.seconds(), round)?))).collect();
    let longest = still.iter().map(|(_, seconds)| *seconds).reduce(f64::max)?;
    let conflicts = still.iter().flat_map(|(round, _)| &round.conflicts);
    let deadlocks: u64 =
        conflicts.filter(|it| it.sqlstate == DEADLOCK).map(|it| it.count).fold(0, u64::saturating_add);
    let text = format!(
        "in {} nothing was committed for up to {} s on end, far longer than transactions take or \
         lie apart: {}, so the mean isn't a rate of work",
        of_rounds(still.len(), rounds.len()),
        short(longest),
        cause_of_standstill(deadlocks)
    );
    Some(flag(FlagKind::StoodStill, text))
}

/// What a standstill may have been. A deadlock is only looked for when a lock has been waited for
/// long enough (PostgreSQL: `deadlock_timeout`, a second by default).
fn cause_of_standstill(deadlocks: u64) -> String {
    match deadlocks {
        0 => "the server, the network or this machine stood still".to_owned(),
        _ => format!(
            "clients waited in {}, which the server looks for after deadlock_timeout, or something stood still",
            counted(deadlocks, "deadlock")
        ),
    }
}

/// For how many seconds nothing was committed in a round, or for how long it went on beyond its
/// time, if that is more than commits at random instants and long transactions explain.
fn standstill(planned_s: Option<f64>, round: &Round) -> Option<f64> {
    if round.transactions.committed == 0 {
        return None;
    }
    let pause = round.series.as_ref().map_or(0.0, |series| {
        let bins = series.committed.split(|committed| *committed > 0).map(<[u64]>::len);
        bins.max().unwrap_or(0) as f64 * series.bin_s
    });
    let overrun = planned_s.map_or(0.0, |planned| round.seconds - planned);
    let apart = round.seconds / round.transactions.committed as f64;
    let typical = round.latency_ms.p50.or(round.latency_ms.mean).unwrap_or(0.0) / 1e3;
    let explained = STILL.max(STILL_COMMITS * apart).max(STILL_LATENCIES * typical);
    Some(pause.max(overrun)).filter(|still| *still > explained)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;
    use crate::document::{Counter, Series, ServerSide};

    #[test]
    fn a_single_alarm_among_many_is_none() {
        for (alarms, rounds, flagged) in [
            (0, 0, false),
            (0, 5, false),
            (1, 1, true),
            (1, 2, false),
            (2, 2, true),
            (1, 5, false),
            (2, 5, true),
            (3, 10, false),
            (4, 10, true),
        ] {
            assert_eq!(often(alarms, rounds), flagged, "{alarms} of {rounds}");
        }
    }

    #[test]
    fn transactions_that_the_server_raised_are_a_flag() {
        let round = |name: &str, change: f64| {
            let nothing = (Ledger::default(), LatencyHistogram::new());
            let elapsed = Duration::from_secs(1);
            let mut round = Round::from_ledger(1, &nothing.0, &nothing.1, elapsed, Vec::new());
            let counters = vec![Counter { name: name.to_owned(), change, ..Counter::default() }];
            round.server = Some(ServerSide { counters, ..ServerSide::default() });
            round
        };
        let (raised, none, other) = (round(UPGRADED, 7.0), round(UPGRADED, 0.0), round("txn.commits", 7.0));
        assert_eq!(level_upgraded(&[&none, &other]), None);
        let flag = level_upgraded(&[&none, &raised, &other]).unwrap();
        assert_eq!(flag.kind, FlagKind::LevelUpgraded);
        assert!(flag.text.starts_with("in 1 of 3 rounds the server counted"), "{}", flag.text);
    }

    #[test]
    fn a_freeze_differs_from_long_and_from_rare_transactions() {
        let round = |seconds: f64, committed: u64, p50: f64, bins: &[u64]| {
            let elapsed = Duration::from_secs_f64(seconds);
            let nothing = (Ledger::default(), LatencyHistogram::new());
            let mut round = Round::from_ledger(1, &nothing.0, &nothing.1, elapsed, Vec::new());
            round.transactions.committed = committed;
            round.latency_ms.p50 = Some(p50);
            round.series = Some(Series { bin_s: 1.0, committed: bins.to_vec(), ..Series::default() });
            standstill(Some(5.0), &round)
        };
        let frozen: Vec<u64> = [vec![1000; 3], vec![0; 12], vec![1000; 2]].concat();
        assert_eq!(round(17.0, 5000, 2.0, &frozen), Some(12.0));
        // It froze when the time was nearly up.
        assert_eq!(round(17.0, 5000, 2.0, &[]), Some(12.0));
        assert_eq!(round(5.2, 5000, 2.0, &[1000; 5]), None);
        assert_eq!(
            round(15.0, 8, 10_000.0, &[vec![0; 14], vec![8]].concat()),
            None,
            "each takes ten seconds"
        );
        assert_eq!(
            round(15.0, 3, 5.0, &[vec![1], vec![0; 13], vec![2]].concat()),
            None,
            "one in five seconds"
        );
        assert_eq!(round(30.0, 0, 5.0, &[0; 30]), None, "nothing to compare with");
        assert!(!cause_of_standstill(0).contains("deadlock"));
        assert!(cause_of_standstill(2).starts_with("clients waited in 2 deadlocks, "));
    }

    #[test]
    fn half_speed_for_a_while_is_two_speeds_and_an_unsteady_start() {
        let slow_then_fast: Vec<f64> =
            (0..100).map(|bin| if bin < 40 { 500.0 } else { 1000.0 } + f64::from(bin * 7 % 11)).collect();
        let kinds: Vec<FlagKind> =
            [unsteady_start(std::slice::from_ref(&slow_then_fast)), two_speeds(&[slow_then_fast])]
                .into_iter()
                .flatten()
                .map(|flag| flag.kind)
                .collect();
        assert_eq!(kinds, [FlagKind::Transient, FlagKind::Bimodal]);
    }

    #[test]
    fn rounds_of_few_slices_are_judged_together() {
        let rounds = |level: fn(u32, u32) -> f64| -> Vec<Vec<f64>> {
            let noisy = |round: u32| {
                (0..10)
                    .map(|at| level(round, at) * (1000.0 + f64::from((round * 10 + at) * 37 % 101)))
                    .collect()
            };
            (0..8).map(noisy).collect()
        };
        let texts = |bins: &[Vec<f64>]| -> Vec<String> {
            [unsteady_start(bins), drifts(bins), two_speeds(bins)]
                .into_iter()
                .flatten()
                .map(|flag| flag.text.chars().take(60).collect())
                .collect()
        };
        assert_eq!(texts(&rounds(|_, _| 1.0)), [""; 0]);
        // One slice in ten is a level of its own, too.
        let cold = texts(&rounds(|_, at| if at == 0 { 0.75 } else { 1.0 }));
        assert!(cold[0].starts_with("over 8 rounds, throughput at the start was 2"), "{cold:?}");
        let falling = texts(&rounds(|_, at| 1.0 - 0.03 * f64::from(at)));
        assert!(matches!(&falling[..], [drift] if drift.starts_with("over 8 rounds, the rate fell by 2")));
        let two = texts(&rounds(|round, at| if (round + at) % 6 < 3 { 1.0 } else { 0.5 }));
        assert!(matches!(&two[..], [two] if two.starts_with("over all rounds the rate had two levels")));
    }
}
