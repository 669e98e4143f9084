//! The figures: a row for each, the most important ones first. Where there isn't room for all, the last
//! ones are left out.

use super::{Better, Figure, InTable, Measured, OfCell, OfRound, Shown, UNMEASURED, Value, unmeasured};
use crate::document::{Cell, Document, Round, Verdict, VerdictSummary};
use crate::durability;
use crate::numbers::finite;
use crate::rounds::{counted_ledger, groups, kept_share, planned, rate, settings_name};

/// The committed transactions from the start of measuring to its end, of all complete rounds.
const COMMITTED: &str = "committed transactions of the measured time, of all complete rounds";
/// The same of transactions that ran, whatever became of them.
const TRANSACTIONS: &str = "transactions of the measured time, of all complete rounds";
/// The same of attempts.
const ATTEMPTS: &str = "attempts of the measured time, of all complete rounds";
/// The means of rounds.
const EACH_ROUND: &str = "mean of the complete rounds, each by its measured time";
/// Those of pairs of rounds.
const PAIRS: &str = "geometric mean over the rounds that both have";
/// What recordings show.
const RECORDED: &str = "recorded histories of all rounds";
/// Statistics of the server.
const SERVER: &str = "samples of the server's views in the measured time, of all rounds";
/// What faults did.
const FAULTS: &str = "rounds with a fault";

/// A figure of which less is better, shown as a number, without a value.
const LESS: Figure = Figure {
    name: "",
    aliases: &[],
    heading: ("", ""),
    unit: "",
    better: Better::Less,
    said: "",
    meaning: "",
    population: "",
    shown: Shown::Number,
    of_cell: OfCell::Rounds,
    of_round: None,
    column: None,
};

/// The same of which more is better.
const MORE: Figure = Figure { better: Better::More, ..LESS };

/// A percentile of the latency.
const LATENCY: Figure = Figure { unit: "ms", population: COMMITTED, ..LESS };

/// The figures, the most important ones first.
pub static FIGURES: &[Figure] = &[
    Figure {
        name: "tps",
        heading: ("committed", "per s"),
        unit: "per s",
        said: "committed transactions per second",
        meaning: "committed transactions per second",
        population: EACH_ROUND,
        of_cell: OfCell::Estimate(|summary| summary.tps),
        of_round: Some(OfRound::Number(|round| rate(round, round.transactions.committed))),
        column: Some(InTable {
            when: always,
            legend: (
                "committed per s",
                "transactions whose COMMIT was acknowledged, per second; mean of the rounds, below it its 95 % \
                interval",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "ratio",
        heading: ("against", "first level"),
        unit: "of the first level",
        said: "throughput relative to the first level",
        meaning: "committed transactions per second as a multiple of the first level's",
        population: PAIRS,
        of_cell: OfCell::Ratio(|summary| summary.ratio.as_ref(), |cell| cell.level.name()),
        column: Some(InTable {
            when: compares,
            legend: (
                "against first level",
                "what the level costs: committed per s as a multiple of the first level's in the same rounds, and what \
             that is less (−) or more (+), below it the 95 % interval; ≈: the same within 5 %; ?: no measurable \
             difference, or too few rounds",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "anomalies_per_million",
        heading: ("anomalies", "per million"),
        unit: "per million",
        said: "anomalies per million committed attempts",
        meaning: "anomalies per million committed attempts",
        population: RECORDED,
        of_cell: OfCell::Number(|_, cell| anomalies(cell, |verdict| verdict.anomalies_per_million)),
        column: Some(InTable {
            when: judged,
            legend: (
                "anomalies per million",
                "anomalies of all kinds that the data of the recorded histories show, per million \
             committed attempts; ≥: counting was ended early; –: no verdict",
            ),
        }),
        ..LESS
    },
    Figure {
        name: "anomalies",
        heading: ("anomalies", ""),
        unit: "anomalies",
        said: "anomalies",
        meaning: "anomalies that the recorded histories show",
        population: RECORDED,
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| anomalies(cell, |verdict| Some(verdict.anomalies as f64))),
        of_round: Some(OfRound::Count(|round| round.verdict.as_ref().map(Verdict::anomalous))),
        ..LESS
    },
    Figure {
        name: "violations",
        heading: ("violations", ""),
        unit: "violations",
        said: "violations of invariants",
        meaning: "violations of invariants, promised or not",
        population: "the tables after each round",
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| violations(cell)),
        of_round: Some(OfRound::Total(Round::violations)),
        ..LESS
    },
    Figure {
        name: "strategy_ratio",
        heading: ("against", "first strategy"),
        unit: "of the first strategy",
        said: "throughput relative to the first strategy",
        meaning: "committed transactions per second as a multiple of the first strategy's at the same level",
        population: PAIRS,
        of_cell: OfCell::Ratio(|summary| summary.strategy_ratio.as_ref(), |cell| cell.strategy().to_owned()),
        column: Some(InTable {
            when: compares_strategies,
            legend: (
                "against first strategy",
                "committed per s as a multiple of the first strategy's at the same level in the same \
             rounds, in the same way",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "setting_ratio",
        heading: ("against", "first setting"),
        unit: "of the first setting",
        said: "throughput relative to the first setting",
        meaning: "committed transactions per second as a multiple of those with the first settings (or the first \
                  version, standby or fault)",
        population: PAIRS,
        of_cell: OfCell::Ratio(|summary| summary.setting_ratio.as_ref(), settings_name),
        column: Some(InTable {
            when: compares_settings,
            legend: (
                "against first setting",
                "committed per s as a multiple of those with the first settings (or the first version, standby or \
             fault) at the same level with the same strategy in the same rounds, in the same way",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "acknowledged_tps",
        heading: ("acknowl.", "per s"),
        unit: "per s",
        said: "acknowledged transactions per second",
        meaning: "transactions per second that the server acknowledged: committed and swallowed ones. Other tools \
                  show this as tps",
        population: EACH_ROUND,
        of_cell: OfCell::Estimate(|summary| summary.acknowledged_tps.unwrap_or(summary.tps)),
        of_round: Some(OfRound::Number(|round| {
            rate(round, round.transactions.committed.saturating_add(round.transactions.swallowed))
        })),
        column: Some(InTable {
            when: loses_work,
            legend: (
                "acknowledged per s",
                "transactions that the server acknowledged, those included whose work was lost in an \
             error that their own SQL caught; what other tools would show as tps",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "done_share",
        heading: ("done", "of planned"),
        unit: "of planned",
        said: "share of the planned transactions that committed",
        meaning: "committed ÷ planned transactions; only where transactions were counted",
        population: TRANSACTIONS,
        shown: Shown::Share,
        of_cell: OfCell::Number(done_share),
        column: Some(InTable {
            when: counts_transactions,
            legend: (
                "done of planned",
                "transactions that committed / transactions planned: each client's, times clients, times rounds",
            ),
        }),
        ..MORE
    },
    Figure {
        name: "latency_p99_ms",
        aliases: &["p99"],
        heading: ("p99", "ms"),
        said: "99th percentile of the latency",
        meaning: "99th percentile of the latency in milliseconds",
        of_cell: OfCell::Percentile(99.0, |latency| latency.p99),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p99)),
        column: Some(InTable {
            when: always,
            legend: (
                "p50, p95, p99",
                "latency that this percentage of the committed transactions didn't exceed, retries included",
            ),
        }),
        ..LATENCY
    },
    Figure {
        name: "conflict_ratio",
        heading: ("conflict", "ratio"),
        unit: "of attempts",
        said: "share of attempts in conflict",
        meaning: "attempts ended by a conflict as a share of all attempts",
        population: ATTEMPTS,
        shown: Shown::Share,
        of_cell: OfCell::Number(|_, cell| if_started(cell, cell.summary.conflict_ratio)),
        column: Some(InTable {
            when: always,
            legend: ("conflict ratio", "attempts ended by a serialization failure or a deadlock ÷ attempts"),
        }),
        ..LESS
    },
    Figure {
        name: "retries_per_transaction",
        aliases: &["retries"],
        heading: ("retries", "per tx"),
        unit: "per transaction",
        said: "retries per transaction",
        meaning: "further attempts per transaction",
        population: TRANSACTIONS,
        of_cell: OfCell::Number(|_, cell| if_started(cell, cell.summary.retries_per_transaction)),
        column: Some(InTable {
            when: always,
            legend: ("retries per tx", "further attempts ÷ transactions begun"),
        }),
        ..LESS
    },
    Figure {
        name: "wasted_share",
        aliases: &["wasted"],
        heading: ("wasted", "time"),
        unit: "of time",
        said: "share of the clients' busy time wasted",
        meaning: "time of attempts that didn't commit as a share of the time of all attempts",
        population: ATTEMPTS,
        shown: Shown::Share,
        of_cell: OfCell::Number(|_, cell| if_started(cell, cell.summary.wasted_share)),
        column: Some(InTable {
            when: always,
            legend: (
                "wasted time",
                "time in attempts that didn't commit ÷ time in all attempts; without backoff and waiting",
            ),
        }),
        ..LESS
    },
    Figure {
        name: "attempts_per_s",
        heading: ("attempts", "per s"),
        unit: "per s",
        better: Better::Neither,
        said: "attempts per second",
        meaning: "attempts started per second, first ones and retries together",
        population: EACH_ROUND,
        of_cell: OfCell::Number(|_, cell| known(cell.summary.attempts_per_s)),
        column: Some(InTable {
            when: always,
            legend: ("attempts per s", "executions begun, first attempts and retries together"),
        }),
        ..LESS
    },
    Figure {
        name: "latency_p95_ms",
        aliases: &["p95"],
        heading: ("p95", "ms"),
        said: "95th percentile of the latency",
        meaning: "95th percentile of the latency in milliseconds",
        of_cell: OfCell::Percentile(95.0, |latency| latency.p95),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p95)),
        column: Some(InTable { when: always, legend: ("", "") }),
        ..LATENCY
    },
    Figure {
        name: "latency_p50_ms",
        aliases: &["p50", "median_latency"],
        heading: ("p50", "ms"),
        said: "median latency",
        meaning: "median latency in milliseconds",
        of_cell: OfCell::Percentile(50.0, |latency| latency.p50),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p50)),
        column: Some(InTable { when: always, legend: ("", "") }),
        ..LATENCY
    },
    Figure {
        name: "predicate_locks",
        heading: ("predicate", "locks"),
        unit: "locks",
        said: "predicate locks",
        meaning: "the most predicate locks of any sample",
        population: SERVER,
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| known(cell.summary.predicate_locks.map(|locks| locks as f64))),
        of_round: Some(OfRound::Count(|round| round.server.as_ref()?.most_predicate_locks())),
        column: Some(InTable {
            when: locks_predicates,
            legend: (
                "predicate locks",
                "the most predicate locks (SIReadLock: tuples, pages and relations together) that any \
             sample found on the server",
            ),
        }),
        ..LESS
    },
    Figure {
        name: "latency_mean_ms",
        aliases: &["mean_latency"],
        heading: ("mean", "ms"),
        said: "mean latency",
        meaning: "mean latency in milliseconds",
        of_cell: OfCell::Number(|_, cell| known(cell.summary.latency_ms.mean)),
        of_round: Some(OfRound::Number(|round| round.latency_ms.mean)),
        ..LATENCY
    },
    Figure {
        name: "latency_p90_ms",
        aliases: &["p90"],
        heading: ("p90", "ms"),
        said: "90th percentile of the latency",
        meaning: "90th percentile of the latency in milliseconds",
        of_cell: OfCell::Percentile(90.0, |latency| latency.p90),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p90)),
        ..LATENCY
    },
    Figure {
        name: "latency_p999_ms",
        aliases: &["p99.9"],
        heading: ("p99.9", "ms"),
        said: "99.9th percentile of the latency",
        meaning: "99.9th percentile of the latency in milliseconds",
        of_cell: OfCell::Percentile(99.9, |latency| latency.p999),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p999)),
        ..LATENCY
    },
    Figure {
        name: "latency_p9999_ms",
        aliases: &["p99.99"],
        heading: ("p99.99", "ms"),
        said: "99.99th percentile of the latency",
        meaning: "99.99th percentile of the latency in milliseconds",
        of_cell: OfCell::Percentile(99.99, |latency| latency.p9999),
        of_round: Some(OfRound::Number(|round| round.latency_ms.p9999)),
        ..LATENCY
    },
    Figure {
        name: "per_minute",
        heading: ("committed", "per min"),
        unit: "per minute",
        said: "committed transactions per minute of the script that is reported",
        meaning: "committed transactions per minute of the script that the workload names",
        population: EACH_ROUND,
        of_cell: OfCell::Estimate(|summary| summary.per_minute.unwrap_or_default()),
        ..MORE
    },
    Figure {
        name: "transactions_given_up",
        aliases: &["given_up"],
        heading: ("given up", ""),
        unit: "transactions",
        said: "transactions given up",
        meaning: "transactions given up",
        population: TRANSACTIONS,
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| {
            if_started(cell, counted_ledger(cell).transactions.given_up as f64)
        }),
        of_round: Some(OfRound::Total(|round| round.transactions.given_up)),
        ..LESS
    },
    Figure {
        name: "transactions_swallowed",
        aliases: &["swallowed"],
        heading: ("swallowed", ""),
        unit: "transactions",
        said: "transactions acknowledged with their work undone",
        meaning: "transactions acknowledged with their work undone",
        population: TRANSACTIONS,
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| {
            if_started(cell, counted_ledger(cell).transactions.swallowed as f64)
        }),
        of_round: Some(OfRound::Total(|round| round.transactions.swallowed)),
        ..LESS
    },
    Figure {
        name: "rolled_back_per_s",
        heading: ("rolled back", "per s"),
        unit: "per s",
        better: Better::Neither,
        said: "transactions per second that their own script rolled back",
        meaning: "transactions that their own script rolled back, per second",
        population: EACH_ROUND,
        of_round: Some(OfRound::Number(|round| rate(round, round.transactions.rolled_back))),
        ..LESS
    },
    Figure {
        name: "kept_share",
        heading: ("kept", "of acknowl."),
        unit: "of acknowledged",
        said: "share of the acknowledged transactions that committed work",
        meaning: "committed ÷ acknowledged transactions",
        population: TRANSACTIONS,
        shown: Shown::Share,
        of_cell: OfCell::Number(|_, cell| known(kept_share(cell))),
        ..MORE
    },
    Figure {
        name: "lost_commits",
        heading: ("lost", "commits"),
        unit: "commits",
        said: "acknowledged commits lost",
        meaning: "acknowledged commits that are lost",
        population: FAULTS,
        shown: Shown::Count,
        of_cell: OfCell::Number(|_, cell| {
            known(cell.settled(|round| round.settlement.lost).map(|lost| lost as f64))
        }),
        ..LESS
    },
    Figure {
        name: "silence_s",
        aliases: &["silence"],
        heading: ("no commits", "s"),
        unit: "s",
        said: "seconds without a commit",
        meaning: "seconds without a commit around a fault, the mean of the rounds' longest",
        population: FAULTS,
        of_cell: OfCell::Number(|_, cell| known(durability::silence(cell))),
        ..LESS
    },
    Figure {
        name: "server_cpu_us",
        heading: ("server CPU", "µs per tx"),
        unit: "µs per transaction",
        said: "CPU time of the server per committed transaction",
        meaning: "CPU time of the server's processes per committed transaction in microseconds",
        population: COMMITTED,
        of_cell: OfCell::Number(|_, cell| known(cell.summary.server_cpu_us)),
        ..LESS
    },
    Figure {
        name: "client_cpu_us",
        heading: ("client CPU", "µs per tx"),
        unit: "µs per transaction",
        said: "CPU time of isobench per committed transaction",
        meaning: "CPU time of the measuring process per committed transaction in microseconds",
        population: COMMITTED,
        of_cell: OfCell::Number(|_, cell| known(cell.summary.client_cpu_us)),
        ..LESS
    },
];

fn exactly(number: f64) -> Value {
    Value { number, low: None, high: None, at_least: false }
}

fn known(number: Option<f64>) -> Measured {
    number.and_then(finite).map_or_else(unmeasured, |number| Ok(exactly(number)))
}

/// Shares of nothing aren't zero.
fn if_started(cell: &Cell, number: f64) -> Measured {
    if counted_ledger(cell).attempts.started > 0 { Ok(exactly(number)) } else { unmeasured() }
}

fn done_share(document: &Document, cell: &Cell) -> Measured {
    let planned = planned(document, cell).map(|planned| planned as f64);
    let committed = counted_ledger(cell).transactions.committed;
    known(planned.map(|planned| committed as f64 / planned))
}

fn anomalies(cell: &Cell, count: fn(&VerdictSummary) -> Option<f64>) -> Measured {
    let Some(verdict) = &cell.summary.verdict else {
        return Err(format!("{UNMEASURED}: no history was recorded, so nothing is known of anomalies"));
    };
    if cell.rounds.iter().any(|round| round.verdict.is_none()) {
        return Err(format!("{UNMEASURED}: a round has no recorded history"));
    }
    // A verdict that a doubt withholds counts anomalies that may be none, or misses some.
    match (verdict.withheld.first(), count(verdict)) {
        (Some(why), _) => Err(format!("{UNMEASURED}: the verdict is withheld: {why}")),
        (None, Some(number)) => Ok(Value { number, low: None, high: None, at_least: verdict.at_least }),
        (None, None) => unmeasured(),
    }
}

fn violations(cell: &Cell) -> Measured {
    if cell.rounds.is_empty() || cell.rounds.iter().any(|round| round.invariants.is_empty()) {
        return Err(format!("{UNMEASURED}: there is no invariant to check"));
    }
    let invariants = cell.rounds.iter().flat_map(|round| &round.invariants);
    let unchecked = invariants.clone().any(|invariant| invariant.held.is_none());
    if unchecked && cell.summary.violations == 0 {
        return Err(format!("{UNMEASURED}: an invariant couldn't be checked"));
    }
    // Some are broken without a number of violations.
    let broken = invariants.filter(|invariant| invariant.held == Some(false)).count() as f64;
    let number = (cell.summary.violations as f64).max(broken.min(1.0));
    Ok(Value { number, low: None, high: None, at_least: unchecked })
}

fn always(_: &Document) -> bool {
    true
}

/// True if there are levels to compare.
fn compares(document: &Document) -> bool {
    groups(document).iter().any(|group| group.len() > 1)
}

fn compares_strategies(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.summary.strategy_ratio.is_some())
}

fn compares_settings(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.summary.setting_ratio.is_some())
}

/// True if any history was recorded.
fn judged(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.summary.verdict.is_some())
}

fn loses_work(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.swallowed() > 0)
}

fn counts_transactions(document: &Document) -> bool {
    document.cells.iter().any(|cell| planned(document, cell).is_some())
}

fn locks_predicates(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.summary.predicate_locks.is_some_and(|locks| locks > 0))
}
