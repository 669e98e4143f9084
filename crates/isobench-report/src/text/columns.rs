//! The columns of the table: one row here for each.
//!
//! Not here: widths and alignment (`layout`).

use crate::document::{Cell, Document, Interval};
use crate::numbers::{MISSING, count, optional, percent, short};
use crate::summarise::counted_ledger;

/// One column of the table.
pub struct Column {
    /// The first line of the heading.
    pub title: &'static str,
    /// The second line of the heading.
    pub unit: &'static str,
    /// True for numbers, which stand at the right.
    pub right: bool,
    /// The name in the legend, and what the column counts; empty where the column before says it.
    pub legend: (&'static str, &'static str),
    /// The lines of a cell.
    pub show: fn(&Document, &Cell) -> Vec<String>,
}

/// The factors of the plan besides the level; shown only where they vary.
pub static FACTORS: [Column; 7] = [
    Column {
        title: "workload",
        unit: "",
        right: false,
        legend: ("workload", "script or scripts that the clients run"),
        show: |_, cell| vec![cell.workload.clone()],
    },
    Column {
        title: "scale",
        unit: "",
        right: true,
        legend: ("scale", "size of the tables"),
        show: |_, cell| vec![count(cell.scale.into())],
    },
    Column {
        title: "clients",
        unit: "",
        right: true,
        legend: ("clients", "simulated users, each with a connection"),
        show: |_, cell| vec![count(cell.clients.into())],
    },
    Column {
        title: "jobs",
        unit: "",
        right: true,
        legend: ("jobs", "worker threads that drive the clients"),
        show: |_, cell| vec![count(cell.jobs.into())],
    },
    Column {
        title: "protocol",
        unit: "",
        right: false,
        legend: ("protocol", "query protocol"),
        show: |_, cell| vec![cell.protocol.clone()],
    },
    Column {
        title: "backoff",
        unit: "",
        right: false,
        legend: ("backoff", "retry policy: how long a client waits before it tries again"),
        show: |_, cell| vec![cell.backoff.clone()],
    },
    Column {
        title: "rate",
        unit: "per s",
        right: true,
        legend: (
            "rate",
            "transactions that were to be begun per second; latency counts from the scheduled start",
        ),
        show: |_, cell| vec![optional(cell.rate)],
    },
];

/// The isolation level, with whatever brands the row.
pub static LEVEL: Column = Column {
    title: "level",
    unit: "",
    right: false,
    legend: (
        "level",
        "isolation level asked for; → what the server says it runs instead; CAPITALS: don't trust this row; !: less \
         certain than it looks, see below",
    ),
    show: level,
};

/// The title of the column that only a comparison has.
pub const RATIO_TITLE: &str = "× first";

/// The titles of the columns that are left out where the table gets too wide; they follow from others.
pub const SPARE_TITLES: [&str; 2] = ["attempts", "retries"];

/// The title of the column that only recorded histories have.
pub const ANOMALIES_TITLE: &str = "anomalies";

/// What was measured.
pub static FIGURES: [Column; 11] = [
    Column {
        title: "committed",
        unit: "per s",
        right: true,
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
        legend: (
            "× first level",
            "committed per s as a multiple of the first level's in the same rounds, below it the 95 % interval; \
             less, more: the interval excludes 1; noise: it doesn't; ?: too few rounds to tell",
        ),
        show: ratio,
    },
    Column {
        title: SPARE_TITLES[0],
        unit: "per s",
        right: true,
        legend: ("attempts per s", "executions begun, first attempts and retries together"),
        show: |_, cell| vec![optional(cell.summary.attempts_per_s)],
    },
    Column {
        title: "conflict",
        unit: "ratio",
        right: true,
        legend: ("conflict ratio", "attempts ended by a serialization failure or a deadlock ÷ attempts"),
        show: |_, cell| vec![if_started(cell, percent(cell.summary.conflict_ratio))],
    },
    Column {
        title: SPARE_TITLES[1],
        unit: "per tx",
        right: true,
        legend: ("retries per tx", "further attempts ÷ transactions begun"),
        show: |_, cell| vec![if_started(cell, short(cell.summary.retries_per_transaction))],
    },
    Column {
        title: "wasted",
        unit: "time",
        right: true,
        legend: (
            "wasted time",
            "time in attempts that didn't commit ÷ time in all attempts; without backoff and waiting",
        ),
        show: |_, cell| vec![if_started(cell, percent(cell.summary.wasted_share))],
    },
    Column {
        title: "p50",
        unit: "ms",
        right: true,
        legend: (
            "p50, p95, p99",
            "latency that this percentage of the committed transactions didn't exceed, retries included",
        ),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p50)],
    },
    Column {
        title: "p95",
        unit: "ms",
        right: true,
        legend: ("", ""),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p95)],
    },
    Column {
        title: "p99",
        unit: "ms",
        right: true,
        legend: ("", ""),
        show: |_, cell| vec![optional(cell.summary.latency_ms.p99)],
    },
    Column {
        title: ANOMALIES_TITLE,
        unit: "per mill.",
        right: true,
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
        legend: (
            "verdict",
            "the strongest level that the recorded histories of these very rounds don't contradict, and whether the promise \
             was kept; unproved: no history was recorded, and what must be true of the tables (checked after every \
             round) says little about the level",
        ),
        show: verdict,
    },
];

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
