//! Two results side by side: two server versions, two machines, the same server before and after a
//! change.
//!
//! Cells are matched by their factors, and B is compared with A by the statistics of independent
//! rounds, since the rounds of two results weren't interleaved. Not here: what counts as a
//! regression (`regression`), what else differs (`differences`), the renderings (`table`, `text`,
//! `markdown`, `csv`).

mod csv;
mod differences;
mod markdown;
mod regression;
mod table;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use isobench_stats::independent_ratio;
use serde::Serialize;

use crate::document::{Cell, Document, Interval};
use crate::numbers::{counted, finite, short};
use crate::summarise::{counted_ledger, counted_rounds, summarise};

pub use differences::Difference;
pub use regression::Regression;

/// The value of `format` in a pair's JSON.
pub const PAIR_FORMAT: &str = "isobench/pair";

/// The version of that JSON's shape.
pub const PAIR_FORMAT_VERSION: u32 = 1;

/// Two results, matched cell by cell. B is compared with A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Always "isobench/pair".
    pub format: &'static str,
    /// The version of the JSON's shape.
    pub format_version: u32,
    /// The result that B is compared with.
    pub a: Side,
    /// The result that is compared.
    pub b: Side,
    /// Warnings to read before believing the ratios, a sentence each.
    pub warnings: Vec<String>,
    /// The differences between the two besides the numbers.
    pub differences: Vec<Difference>,
    /// The cells that both have, in the order of A.
    pub cells: Vec<PairedCell>,
    /// The cells that only A has, by name.
    pub only_in_a: Vec<String>,
    /// The cells that only B has, by name.
    pub only_in_b: Vec<String>,
}

/// One of the two results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The file that it comes from; empty until [`Pair::named`] sets it.
    pub name: String,
    /// Product and version of the server.
    pub server: String,
    /// The start of measuring, RFC 3339.
    pub started_at: Option<String>,
    /// True if everything planned was measured.
    pub complete: bool,
}

/// A cell that both results have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedCell {
    /// The level, the number of clients, and the other factors that vary, in words.
    pub name: String,
    /// The same without the level.
    #[serde(skip)]
    pub others: String,
    /// The factors that the cells were matched by.
    pub factors: Factors,
    /// The figures of A.
    pub a: Figures,
    /// The figures of B.
    pub b: Figures,
    /// Committed transactions per second of B as a multiple of A's; null where there is nothing to
    /// compare.
    pub ratio: Option<PairRatio>,
}

/// The factors that cells are matched by. Workers aren't among them: they are listed where they
/// differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factors {
    /// The name of the workload.
    pub workload: String,
    /// Scale of the tables.
    pub scale: u32,
    /// Number of simulated users.
    pub clients: u32,
    /// The query protocol.
    pub protocol: String,
    /// The retry policy.
    pub backoff: String,
    /// Transactions per second that were to start; null: as many as possible.
    pub rate: Option<f64>,
    /// The strategy against conflicts; "retry" if the plan names none.
    pub strategy: String,
    /// The parameters that the plan varies.
    pub varied: BTreeMap<String, String>,
    /// The isolation level asked for (the one in effect, where none was).
    pub level: String,
}

/// The figures of a cell of one result. Definitions are those of the document's summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Complete rounds.
    pub rounds: u32,
    /// Committed transactions per second.
    pub tps: Interval,
    /// Median latency in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub p99_ms: Option<f64>,
    /// Attempts ended by a conflict ÷ attempts; null if there were none.
    pub conflict_ratio: Option<f64>,
    /// Time of attempts that didn't commit ÷ time of all attempts; null if there were none.
    pub wasted_share: Option<f64>,
    /// CPU time of the server's processes per committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// CPU time of the measuring process per committed transaction, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// The strongest models that no recorded history contradicts; empty if none was recorded.
    pub models: Vec<String>,
    /// False if a history contradicts what is promised, or an invariant is broken that is; null if
    /// neither could be checked.
    pub promise_kept: Option<bool>,
}

/// B's throughput as a multiple of A's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairRatio {
    /// The ratio of the geometric means of the rounds.
    pub mean: f64,
    /// Lower end of the interval (Welch's t of the logarithms); null if it can't be computed. The
    /// intervals of all cells together hold with 95 % confidence.
    pub low: Option<f64>,
    /// Upper end of the interval; null if it can't be computed.
    pub high: Option<f64>,
    /// True if the interval excludes 1, and the difference is larger than what equal cells differ
    /// by, where either result measured that.
    pub significant: bool,
}

/// Two results that can't be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the two results can't be compared: A has measurement version {a} and B has {b}, so the same names mean different \
     numbers; measure both with the same isobench"
)]
pub struct PairError {
    /// The measurement version of A.
    pub a: u32,
    /// The measurement version of B.
    pub b: u32,
}

/// Puts two results side by side. Summaries are computed from the rounds, whatever the documents
/// say. A/A cells are left out.
///
/// # Errors
/// [`PairError`], if the numbers of the two don't mean the same.
pub fn compare_results(a: &Document, b: &Document) -> Result<Pair, PairError> {
    if a.measurement_version != b.measurement_version {
        return Err(PairError { a: a.measurement_version, b: b.measurement_version });
    }
    let [a, b] = [a, b].map(|document| {
        let mut document = document.clone();
        summarise(&mut document);
        document
    });
    let cells = [&a, &b].map(|document| -> Vec<(Factors, &Cell)> {
        let cells = document.cells.iter().filter(|cell| !cell.calibration);
        cells.map(|cell| (Factors::of(cell), cell)).collect()
    });
    let names = Names::of(&cells);
    let (matched, only_in_a, only_in_b) = matched(&cells, &names);
    Ok(Pair {
        format: PAIR_FORMAT,
        format_version: PAIR_FORMAT_VERSION,
        warnings: differences::warnings(&a, &b),
        differences: differences::differences(&a, &b),
        a: Side::of(&a),
        b: Side::of(&b),
        cells: matched,
        only_in_a,
        only_in_b,
    })
}

type Sides<'a> = [Vec<(Factors, &'a Cell)>; 2];

/// The cells that both have, and the names of the others.
fn matched(cells: &Sides, names: &Names) -> (Vec<PairedCell>, Vec<String>, Vec<String>) {
    let [a, b] = cells;
    let mut taken = vec![false; b.len()];
    let (mut pairs, mut only_in_a) = (Vec::new(), Vec::new());
    for (factors, cell) in a {
        let found = b.iter().enumerate().position(|(index, (other, _))| !taken[index] && other == factors);
        let Some(index) = found else {
            only_in_a.push(names.of_cell(factors));
            continue;
        };
        taken[index] = true;
        pairs.push((factors, *cell, b[index].1));
    }
    let rest = b.iter().zip(&taken).filter(|(_, taken)| !**taken);
    let only_in_b = rest.map(|((factors, _), _)| names.of_cell(factors)).collect();
    let ratios = ratios(&pairs);
    let paired = pairs.into_iter().zip(ratios).map(|((factors, a, b), ratio)| PairedCell {
        name: names.of_cell(factors),
        others: names.others(factors),
        factors: factors.clone(),
        a: Figures::of(a),
        b: Figures::of(b),
        ratio,
    });
    (paired.collect(), only_in_a, only_in_b)
}

/// The ratio of each pair. Many cells are many chances of a false alarm, so all are one family.
fn ratios(pairs: &[(&Factors, &Cell, &Cell)]) -> Vec<Option<PairRatio>> {
    let judged = pairs.iter().map(|(_, a, b)| {
        let ratio = independent_ratio(&rates(b), &rates(a), pairs.len())?;
        let (mean, low, high) = (ratio.mean, ratio.low, ratio.high);
        Some(PairRatio { mean, low, high, significant: ratio.beyond(noise(a).max(noise(b))) })
    });
    judged.collect()
}

/// The noise beside this cell, as a distance of logarithms; 0 if it wasn't measured.
fn noise(cell: &Cell) -> f64 {
    cell.summary.ratio.as_ref().and_then(|ratio| ratio.noise).map_or(0.0, f64::ln_1p)
}

/// Committed transactions per second of each round that counts.
fn rates(cell: &Cell) -> Vec<f64> {
    let rate = |committed: u64, seconds: f64| finite(committed as f64 / seconds).filter(|rate| *rate >= 0.0);
    let rounds = counted_rounds(cell).into_iter();
    rounds.filter_map(|round| rate(round.transactions.committed, round.seconds)).collect()
}

impl Pair {
    /// The same pair with the names of the two files.
    #[must_use]
    pub fn named(mut self, a: impl Into<String>, b: impl Into<String>) -> Pair {
        self.a.name = a.into();
        self.b.name = b.into();
        self
    }

    /// The pair as indented JSON with a newline at the end.
    ///
    /// # Panics
    /// Never: every key is a string and nothing refuses to be written.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a pair is plain data");
        text.push('\n');
        text
    }
}

impl Side {
    fn of(document: &Document) -> Side {
        let server = &document.server;
        let product = if server.product.is_empty() { "unknown product" } else { &server.product };
        Side {
            name: String::new(),
            server: format!("{product} {}", server.version).trim_end().to_owned(),
            started_at: document.started_at.clone(),
            complete: document.complete,
        }
    }

    /// The letter with what is known of the result, in words.
    fn describe(&self, letter: char) -> String {
        let when = self.started_at.as_ref().map(|time| format!("measured {time}"));
        let incomplete = (!self.complete).then(|| "INCOMPLETE".to_owned());
        let name = Some(self.name.clone()).filter(|name| !name.is_empty());
        let parts = [name, Some(self.server.clone()), when, incomplete];
        format!("{letter}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Factors {
    fn of(cell: &Cell) -> Factors {
        Factors {
            workload: cell.workload.clone(),
            scale: cell.scale,
            clients: cell.clients,
            protocol: cell.protocol.clone(),
            backoff: cell.backoff.clone(),
            rate: cell.rate,
            strategy: cell.strategy().to_owned(),
            varied: cell.varied.clone(),
            level: cell.level.name(),
        }
    }
}

/// A factor in words.
type Word = Box<dyn Fn(&Factors) -> String>;

/// The factors that name a cell besides level and clients: those that vary.
struct Names {
    words: Vec<Word>,
}

impl Names {
    fn of(cells: &Sides) -> Names {
        let sometimes: [fn(&Factors) -> String; 6] = [
            |factors| factors.workload.clone(),
            |factors| format!("scale {}", factors.scale),
            |factors| format!("{} protocol", factors.protocol),
            |factors| format!("backoff {}", factors.backoff),
            |factors| {
                factors
                    .rate
                    .map_or_else(|| "no rate".to_owned(), |rate| format!("{} per s wanted", short(rate)))
            },
            |factors| factors.strategy.clone(),
        ];
        let all: Vec<&Factors> = cells.iter().flatten().map(|(factors, _)| factors).collect();
        let varies = |word: &Word| all.windows(2).any(|two| word(two[0]) != word(two[1]));
        let parameters: BTreeSet<&String> = all.iter().flat_map(|factors| factors.varied.keys()).collect();
        let parameters = parameters.into_iter().cloned().map(|name| -> Word {
            Box::new(move |factors| match factors.varied.get(&name) {
                Some(value) => format!("{name} {value}"),
                None => format!("no {name}"),
            })
        });
        let sometimes = sometimes.into_iter().map(|word| -> Word { Box::new(word) });
        Names { words: sometimes.chain(parameters).filter(varies).collect() }
    }

    fn of_cell(&self, factors: &Factors) -> String {
        format!("{}, {}", factors.level, self.others(factors))
    }

    /// The name without the level.
    fn others(&self, factors: &Factors) -> String {
        let clients = counted(factors.clients.into(), "client");
        let words = self.words.iter().map(|word| word(factors));
        std::iter::once(clients).chain(words).collect::<Vec<_>>().join(", ")
    }
}

impl Figures {
    fn of(cell: &Cell) -> Figures {
        let summary = &cell.summary;
        let ran = counted_ledger(cell).attempts.started > 0;
        let verdict = summary.verdict.as_ref();
        let kept = [verdict.and_then(|verdict| verdict.kept), summary.invariants_held];
        Figures {
            rounds: summary.rounds,
            tps: summary.tps,
            p50_ms: summary.latency_ms.p50,
            p95_ms: summary.latency_ms.p95,
            p99_ms: summary.latency_ms.p99,
            conflict_ratio: ran.then_some(summary.conflict_ratio),
            wasted_share: ran.then_some(summary.wasted_share),
            server_cpu_us: summary.server_cpu_us,
            client_cpu_us: summary.client_cpu_us,
            models: verdict.map(|verdict| verdict.models.clone()).unwrap_or_default(),
            promise_kept: kept.into_iter().flatten().reduce(|one, other| one && other),
        }
    }
}
