//! The columns of the table: one row here for each.
//!
//! Not here: the factors (`crate::factors`), widths and alignment (`layout`).

use crate::document::{Cell, Document, Interval, RatioToFirst};
use crate::numbers::{MISSING, count, optional, percent, short};
use crate::summarise::{counted_ledger, groups, kept_share, planned};

/// One column of the table.
pub struct Column {
    /// The first line of the heading.
    pub title: &'static str,
    /// The second line of the heading.
    pub unit: &'static str,
    /// True for numbers, which stand at the right.
    pub right: bool,
    /// True if the document has something for the column.
    pub when: fn(&Document) -> bool,
    /// When the column is left out where the table gets too wide, since it follows from others: first (1), next (2), never (0).
    pub spare: u8,
    /// The name in the legend, and what the column counts; empty where the column before says it.
    pub legend: (&'static str, &'static str),
    /// The lines of a cell.
    pub show: fn(&Document, &Cell) -> Vec<String>,
}

/// The isolation level, with whatever brands the row.
pub static LEVEL: Column = Column {
    title: "level",
    unit: "",
    right: false,
    when: always,
    spare: 0,
    legend: (
        "level",
        "isolation level asked for; → what the server says it runs instead; CAPITALS: don't trust this row; !: less \
         certain than it looks, see below",
    ),
    show: level,
};

/// The title of the column that compares levels.
pub const RATIO_TITLE: &str = "× first";

/// The title of the column with the answer's first number.
pub const COMMITTED_TITLE: &str = "committed";

/// What was measured.
pub static FIGURES: [Column; 15] = [
    Column {
        title: "acknowl.",
        unit: "per s",
        right: true,
        when: loses_work,
        spare: 0,
        legend: (
            "acknowledged per s",
            "transactions that the server acknowledged, those included whose work was lost in an error that their own SQL caught; \
             what other tools would show as tps",
        ),
        show: acknowledged,
    },
    Column {
        title: COMMITTED_TITLE,
        unit: "per s",
        right: true,
        when: always,
        spare: 0,
        legend: (
            "committed per s",
            "transactions whose COMMIT was acknowledged, per second; mean of the rounds, below it its 95 % interval",
        ),
        show: |_, cell| interval_lines(cell.summary.tps),
    },
    Column {
        title: RATIO_TITLE,
        unit: "level",
        right: true,
        when: compares,
        spare: 0,
        legend: (
            "× first level",
            "committed per s as a multiple of the first level's in the same rounds, below it the 95 % interval; \
             less, more: the interval excludes 1; noise: it doesn't; ?: too few rounds to tell",
        ),
        show: ratio,
    },
    Column {
        title: "× first",
        unit: "strategy",
        right: true,
        when: compares_strategies,
        spare: 0,
        legend: (
            "× first strategy",
            "committed per s as a multiple of the first strategy's at the same level in the same rounds, in the same way",
        ),
        show: strategy_ratio,
    },
    Column {
        title: "done",
        unit: "of planned",
        right: true,
        when: counts_transactions,
        spare: 0,
        legend: (
            "done of planned",
            "transactions that committed / transactions planned: each client's, times clients, times rounds",
        ),
        show: done,
    },
    Column {
        title: "attempts",
        unit: "per s",
        right: true,
        when: always,
        spare: 1,
        legend: ("attempts per s", "executions begun, first attempts and retries together"),
        show: |_, cell| vec![optional(cell.summary.attempts_per_s)],
    },
    Column {
        title: "conflict",
        unit: "ratio",
        right: true,
        when: always,
        spare: 0,
        legend: ("conflict ratio", "attempts ended by a serialization failure or a deadlock ÷ attempts"),
        show: |_, cell| vec![if_started(cell, percent(cell.summary.conflict_ratio))],
    },
    Column {
        title: "retries",
        unit: "per tx",
        right: true,
        when: always,
        spare: 1,
        legend: ("retries per tx", "further attempts ÷ transactions begun"),
        show: |_, cell| vec![if_started(cell, short(cell.summary.retries_per_transaction))],
    },
    Column {
        title: "wasted",
        unit: "time",
        right: true,
        when: always,
        spare: 0,
        legend: (
            "wasted time",
            "time in attempts that didn't commit ÷ time in all attempts; without backoff and waiting",
        ),
        show: |_, cell| vec![if_started(cell, percent(cell.summary.wasted_share))],
    },
    Column {
        title: "predicate",
        unit: "locks",
        right: true,
        when: locks_predicates,
        spare: 0,
        legend: (
            "predicate locks",
            "the most predicate locks (SIReadLock: tuples, pages and relations together) that any sample found on the server",
        ),
        show: |_, cell| vec![cell.summary.predicate_locks.map_or_else(|| MISSING.to_owned(), count)],
    },
    Column {
        title: "p50",
        unit: "ms",
        right: true,
        when: always,
        spare: 2,
        legend: ("", ""),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p50)],
    },
    Column {
        title: "p95",
        unit: "ms",
        right: true,
        when: always,
        spare: 2,
        legend: ("", ""),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p95)],
    },
    Column {
        title: "p99",
        unit: "ms",
        right: true,
        when: always,
        spare: 0,
        legend: (
            "p50, p95, p99",
            "latency that this percentage of the committed transactions didn't exceed, retries included",
        ),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p99)],
    },
    Column {
        title: "anomalies",
        unit: "per mill.",
        right: true,
        when: judged,
        spare: 0,
        legend: (
            "anomalies per mill.",
            "anomalies of all kinds that the data of the recorded histories show, per million committed attempts; ≥: counting was ended \
             early",
        ),
        show: anomalies,
    },
    Column {
        title: "verdict",
        unit: "",
        right: false,
        when: always,
        spare: 0,
        legend: (
            "verdict",
            "the strongest level that the recorded histories of these very rounds don't contradict, and whether the promise \
             was kept; unproved: no history was recorded, and what must be true of the tables (checked after every \
             round) says little about the level",
        ),
        show: verdict,
    },
];

/// The columns that a document has something for.
pub fn figures(document: &Document) -> impl Iterator<Item = &'static Column> {
    FIGURES.iter().filter(move |column| (column.when)(document))
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

/// True if the cell lacks rounds that were planned.
pub fn is_incomplete(document: &Document, cell: &Cell) -> bool {
    cell.summary.rounds < document.plan.rounds || cell.rounds.iter().any(|round| !round.complete)
}

/// Transactions of all rounds that ended with an error.
pub fn errored(cell: &Cell) -> u64 {
    cell.rounds.iter().fold(0, |sum, round| sum.saturating_add(round.transactions.errored))
}

fn level(document: &Document, cell: &Cell) -> Vec<String> {
    let mut lines = vec![cell.level.name()];
    if cell.calibration {
        lines.push("once more (A/A)".to_owned());
    }
    if cell.level.differs() {
        lines.push(format!("→ {}", cell.level.effective));
    }
    if is_incomplete(document, cell) {
        let planned = document.plan.rounds.max(u32::try_from(cell.rounds.len()).unwrap_or(u32::MAX));
        lines.push(format!("INCOMPLETE {}/{planned}", cell.summary.rounds));
    }
    if cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false)) {
        lines.push("PROMISE BROKEN".to_owned());
    }
    if let Some(kept) = kept_share(cell).filter(|kept| *kept < 1.0) {
        lines.push(format!("LOST WORK {}", percent(1.0 - kept)));
    }
    let errored = errored(cell);
    if errored > 0 {
        lines.push(format!("ERRORED {}", count(errored)));
    }
    lines.extend(cell.summary.flags.iter().map(|flag| format!("! {}", flag.kind.name())));
    lines
}

/// The mean, and below it the interval.
fn interval_lines(interval: Interval) -> Vec<String> {
    let mut lines = vec![optional(interval.mean)];
    lines.extend(interval.low.zip(interval.high).map(between));
    lines
}

fn between((low, high): (f64, f64)) -> String {
    format!("{}–{}", short(low), short(high))
}

fn ratio(_: &Document, cell: &Cell) -> Vec<String> {
    let Some(ratio) = &cell.summary.ratio else {
        return vec![MISSING.to_owned()];
    };
    if ratio.to == cell.level.name() && !cell.calibration {
        return vec!["first".to_owned()];
    }
    ratio_lines(ratio)
}

/// The mean with a word, and below it the interval.
fn ratio_lines(ratio: &RatioToFirst) -> Vec<String> {
    let ends = ratio.low.zip(ratio.high);
    let word = match (ratio.significant, ends) {
        (_, None) => "?",
        (false, _) => "noise",
        (true, _) if ratio.mean < 1.0 => "less",
        (true, _) => "more",
    };
    let mut lines = vec![format!("{} {word}", short(ratio.mean))];
    lines.extend(ends.map(between));
    lines
}

fn strategy_ratio(_: &Document, cell: &Cell) -> Vec<String> {
    match &cell.summary.strategy_ratio {
        None => vec![MISSING.to_owned()],
        Some(ratio) if ratio.to == cell.strategy() && !cell.calibration => vec!["first".to_owned()],
        Some(ratio) => ratio_lines(ratio),
    }
}

/// The mean, and below it the interval; where nothing was swallowed, it is what committed.
fn acknowledged(_: &Document, cell: &Cell) -> Vec<String> {
    interval_lines(cell.summary.acknowledged_tps.unwrap_or(cell.summary.tps))
}

fn done(document: &Document, cell: &Cell) -> Vec<String> {
    let committed =
        cell.rounds.iter().fold(0_u64, |sum, round| sum.saturating_add(round.transactions.committed));
    let planned = planned(document, cell).map_or_else(|| MISSING.to_owned(), count);
    vec![format!("{} / {planned}", count(committed))]
}

/// Shares of nothing aren't zero.
fn if_started(cell: &Cell, text: String) -> String {
    if counted_ledger(cell).attempts.started == 0 { MISSING.to_owned() } else { text }
}

fn anomalies(_: &Document, cell: &Cell) -> Vec<String> {
    let Some(verdict) = &cell.summary.verdict else { return vec![MISSING.to_owned()] };
    let least = if verdict.at_least { "≥" } else { "" };
    vec![format!("{least}{}", optional(verdict.anomalies_per_million))]
}

fn verdict(_: &Document, cell: &Cell) -> Vec<String> {
    let mut lines = match &cell.summary.verdict {
        None => vec!["unproved".to_owned()],
        Some(verdict) if !verdict.withheld.is_empty() && verdict.kept.is_none() => {
            vec!["withheld".to_owned()]
        }
        Some(verdict) if verdict.models.is_empty() => vec!["none".to_owned()],
        Some(verdict) => verdict.models.clone(),
    };
    match cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept) {
        Some(true) => lines.push("promise unbroken".to_owned()),
        Some(false) => lines.push("promise BROKEN".to_owned()),
        None => {}
    }
    lines.extend(invariants(cell));
    lines
}

fn invariants(cell: &Cell) -> Option<String> {
    let violations = cell.summary.violations;
    let counted =
        || format!("{} {}", count(violations), if violations == 1 { "violation" } else { "violations" });
    match cell.summary.invariants_held {
        Some(true) => Some("invariants held".to_owned()),
        Some(false) if violations > 0 => Some(format!("VIOLATED {}", count(violations))),
        Some(false) => Some("VIOLATED".to_owned()),
        None if violations > 0 => Some(counted()),
        None if cell.rounds.iter().all(|round| round.invariants.is_empty()) => None,
        None => Some("unchecked".to_owned()),
    }
}
