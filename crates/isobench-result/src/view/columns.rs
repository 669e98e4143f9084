//! The columns of the table of results: one row here for each.
//!
//! Not here: the factors (`crate::factors`), widths and alignment (`text/layout`).

use super::{Entry, Estimate, Heading, Mark, Proof, Tables};
use crate::document::{Cell, Document, RatioToFirst};
use crate::summarise::{counted_ledger, groups, planned, settings_name};

/// One column of the table.
pub struct Column {
    /// Its identity.
    pub id: ColumnId,
    /// The first line of the heading.
    pub title: &'static str,
    /// The second line of the heading.
    pub unit: &'static str,
    /// True for numbers, which are right-aligned.
    pub right: bool,
    /// True if the document has something for the column.
    pub when: fn(&Document) -> bool,
    /// The name in the legend, and what the column counts; empty where the column before says it.
    pub legend: (&'static str, &'static str),
    /// The entry of a cell.
    pub show: fn(&Document, &Cell) -> Entry,
}

/// The identity of a column, whatever its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnId {
    /// The level.
    Level,
    /// Acknowledged transactions per second.
    Acknowledged,
    /// Committed transactions per second.
    Committed,
    /// The ratio to the first level.
    ToFirstLevel,
    /// The ratio to the first strategy.
    ToFirstStrategy,
    /// The ratio to the first settings.
    ToFirstSetting,
    /// Committed transactions, of those that were planned.
    Done,
    /// Attempts per second.
    Attempts,
    /// The share of attempts that ended in a conflict.
    Conflicts,
    /// Retries per transaction.
    Retries,
    /// The share of time in attempts that didn't commit.
    Wasted,
    /// The most predicate locks.
    PredicateLocks,
    /// The median latency.
    P50,
    /// The 95th percentile of the latency.
    P95,
    /// The 99th percentile of the latency.
    P99,
    /// Anomalies per million committed attempts.
    Anomalies,
    /// The verdict.
    Verdict,
}

impl Column {
    /// Its heading.
    pub fn heading(&self) -> Heading {
        Heading::new(self.title, self.unit, self.right)
    }
}

/// The isolation level, with whatever brands the row.
pub static LEVEL: Column = Column {
    id: ColumnId::Level,
    title: "level",
    unit: "",
    right: false,
    when: always,
    legend: (
        "level",
        "isolation level asked for; → what the server says it runs instead; CAPITALS: don't trust this row; !: less \
         certain than it looks, see below",
    ),
    show: level,
};

/// The columns of the measurements, the most important ones first: where there isn't room for all,
/// the last ones are left out.
pub static FIGURES: [Column; 16] = [
    Column {
        id: ColumnId::Committed,
        title: "committed",
        unit: "per s",
        right: true,
        when: always,
        legend: (
            "committed per s",
            "transactions whose COMMIT was acknowledged, per second; mean of the rounds, below it its 95 % interval",
        ),
        show: |_, cell| Entry::Estimate(cell.summary.tps.into()),
    },
    Column {
        id: ColumnId::ToFirstLevel,
        title: "against",
        unit: "first level",
        right: true,
        when: compares,
        legend: (
            "against first level",
            "what the level costs: committed per s as a multiple of the first level's in the same rounds, and what that \
             is less (−) or more (+), below it the 95 % interval; ≈: the same within 5 %; ?: these rounds don't \
             tell, or are too few",
        ),
        show: ratio,
    },
    Column {
        id: ColumnId::Anomalies,
        title: "anomalies",
        unit: "per million",
        right: true,
        when: judged,
        legend: (
            "anomalies per million",
            "anomalies of all kinds that the data of the recorded histories show, per million \
             committed attempts; ≥: counting was ended early; –: no verdict",
        ),
        show: anomalies,
    },
    Column {
        id: ColumnId::Verdict,
        title: "verdict",
        unit: "",
        right: false,
        when: always,
        legend: (
            "verdict",
            "the strongest level that the recorded histories of these very rounds don't \
             contradict, and whether the promise was kept; as far as seen: statements that could \
             matter weren't seen; unprotected: values are carried from one transaction to another, which no \
             level protects; unproved: no history was recorded, or no transaction met another \
             one in it, and what must be true of the tables (checked after every round) says little \
             about the level",
        ),
        show: verdict,
    },
    Column {
        id: ColumnId::ToFirstStrategy,
        title: "against",
        unit: "first strategy",
        right: true,
        when: compares_strategies,
        legend: (
            "against first strategy",
            "committed per s as a multiple of the first strategy's at the same level in the same \
             rounds, in the same way",
        ),
        show: strategy_ratio,
    },
    Column {
        id: ColumnId::ToFirstSetting,
        title: "against",
        unit: "first setting",
        right: true,
        when: compares_settings,
        legend: (
            "against first setting",
            "committed per s as a multiple of those with the first settings (or the first version, standby or fault) \
             at the same level with the same strategy in the same rounds, in the same way",
        ),
        show: setting_ratio,
    },
    Column {
        id: ColumnId::Acknowledged,
        title: "acknowl.",
        unit: "per s",
        right: true,
        when: loses_work,
        legend: (
            "acknowledged per s",
            "transactions that the server acknowledged, those included whose work was lost in an \
             error that their own SQL caught; what other tools would show as tps",
        ),
        show: acknowledged,
    },
    Column {
        id: ColumnId::Done,
        title: "done",
        unit: "of planned",
        right: true,
        when: counts_transactions,
        legend: (
            "done of planned",
            "transactions that committed / transactions planned: each client's, times clients, times rounds",
        ),
        show: done,
    },
    Column {
        id: ColumnId::P99,
        title: "p99",
        unit: "ms",
        right: true,
        when: always,
        legend: (
            "p50, p95, p99",
            "latency that this percentage of the committed transactions didn't exceed, retries included",
        ),
        show: |_, cell| percentile(cell, 99.0, cell.summary.latency_ms.p99),
    },
    Column {
        id: ColumnId::Conflicts,
        title: "conflict",
        unit: "ratio",
        right: true,
        when: always,
        legend: ("conflict ratio", "attempts ended by a serialization failure or a deadlock ÷ attempts"),
        show: |_, cell| Entry::Share(if_started(cell, cell.summary.conflict_ratio)),
    },
    Column {
        id: ColumnId::Retries,
        title: "retries",
        unit: "per tx",
        right: true,
        when: always,
        legend: ("retries per tx", "further attempts ÷ transactions begun"),
        show: |_, cell| Entry::Number(if_started(cell, cell.summary.retries_per_transaction)),
    },
    Column {
        id: ColumnId::Wasted,
        title: "wasted",
        unit: "time",
        right: true,
        when: always,
        legend: (
            "wasted time",
            "time in attempts that didn't commit ÷ time in all attempts; without backoff and waiting",
        ),
        show: |_, cell| Entry::Share(if_started(cell, cell.summary.wasted_share)),
    },
    Column {
        id: ColumnId::Attempts,
        title: "attempts",
        unit: "per s",
        right: true,
        when: always,
        legend: ("attempts per s", "executions begun, first attempts and retries together"),
        show: |_, cell| Entry::Number(cell.summary.attempts_per_s),
    },
    Column {
        id: ColumnId::P95,
        title: "p95",
        unit: "ms",
        right: true,
        when: always,
        legend: ("", ""),
        show: |_, cell| percentile(cell, 95.0, cell.summary.latency_ms.p95),
    },
    Column {
        id: ColumnId::P50,
        title: "p50",
        unit: "ms",
        right: true,
        when: always,
        legend: ("", ""),
        show: |_, cell| percentile(cell, 50.0, cell.summary.latency_ms.p50),
    },
    Column {
        id: ColumnId::PredicateLocks,
        title: "predicate",
        unit: "locks",
        right: true,
        when: locks_predicates,
        legend: (
            "predicate locks",
            "the most predicate locks (SIReadLock: tuples, pages and relations together) that any \
             sample found on the server",
        ),
        show: |_, cell| Entry::Count(cell.summary.predicate_locks),
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

fn level(document: &Document, cell: &Cell) -> Entry {
    Entry::Level(cell.level.name(), Mark::all(document, cell))
}

fn ratio(_: &Document, cell: &Cell) -> Entry {
    compared(cell, cell.summary.ratio.as_ref(), &cell.level.name())
}

fn strategy_ratio(_: &Document, cell: &Cell) -> Entry {
    compared(cell, cell.summary.strategy_ratio.as_ref(), cell.strategy())
}

fn setting_ratio(_: &Document, cell: &Cell) -> Entry {
    compared(cell, cell.summary.setting_ratio.as_ref(), &settings_name(cell))
}

/// The ratio of a cell of this name to the first one.
fn compared(cell: &Cell, ratio: Option<&RatioToFirst>, name: &str) -> Entry {
    match ratio {
        None => Entry::Number(None),
        Some(ratio) if ratio.to == name && !cell.calibration => Entry::First,
        Some(ratio) => Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant),
    }
}

/// The acknowledged throughput: that of the commits where nothing was swallowed.
fn acknowledged(_: &Document, cell: &Cell) -> Entry {
    Entry::Estimate(cell.summary.acknowledged_tps.unwrap_or(cell.summary.tps).into())
}

fn done(document: &Document, cell: &Cell) -> Entry {
    let done = cell.rounds.iter().fold(0_u64, |sum, round| sum.saturating_add(round.transactions.committed));
    Entry::Progress { done, planned: planned(document, cell) }
}

/// Shares of nothing aren't zero.
fn if_started(cell: &Cell, value: f64) -> Option<f64> {
    (counted_ledger(cell).attempts.started > 0).then_some(value)
}

fn percentile(cell: &Cell, percent: f64, value: Option<f64>) -> Entry {
    let known = cell.summary.percentiles.iter().find(|known| (known.percent - percent).abs() < 1e-9);
    Entry::Percentile { value, estimate: known.map(Estimate::from) }
}

fn anomalies(_: &Document, cell: &Cell) -> Entry {
    let verdict = cell.summary.verdict.as_ref();
    Entry::Least {
        value: verdict.and_then(|verdict| verdict.anomalies_per_million),
        at_least: verdict.is_some_and(|verdict| verdict.at_least),
    }
}

fn verdict(_: &Document, cell: &Cell) -> Entry {
    let proof = Proof::of(cell);
    let kept = cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept);
    // A promise that nothing could break wasn't tried.
    let kept = kept.filter(|kept| !(*kept && proof == Proof::NothingShared));
    Entry::Verdict(proof, kept, Tables::of(cell))
}
