//! Two results side by side: two server versions, two machines, the same server before and after a
//! change.
//!
//! Cells are matched by their factors, and B is compared with A by the statistics of independent
//! rounds, since the rounds of two results weren't interleaved. All ratios of a pair are judged
//! together, and their intervals hold together. Not here: the ratios between levels
//! (`between_levels`), what counts as a regression (`regression`), what else differs
//! (`differences`), the table (`table`), the layouts (`isobench-report`).

mod between_levels;
mod differences;
mod regression;
pub mod table;

use isobench_stats::independent_ratio;
use serde::{Serialize, Serializer};

use crate::conclusions::summarise;
use crate::document::{Cell, Document, Interval, plain};
use crate::factor::{Assignment, Names};
use crate::figure::{FIGURES, Value};
use crate::rounds::{counted_rounds, rate};
use crate::view::Proof;

pub use between_levels::LevelRatio;
pub use differences::Difference;
pub(crate) use differences::conditions;
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
    /// What each level costs in both, where both have the first level beside it.
    pub levels: Vec<LevelRatio>,
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
    pub factors: Assignment,
    /// The figures of A.
    pub a: Figures,
    /// The figures of B.
    pub b: Figures,
    /// Committed transactions per second of B as a multiple of A's; null where there is nothing to
    /// compare.
    pub ratio: Option<PairRatio>,
}

/// The figures of a cell of one result. Definitions are those of the document's summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Complete rounds.
    pub rounds: u32,
    /// Committed transactions per second.
    pub tps: Interval,
    /// Every figure that was measured.
    #[serde(flatten)]
    measured: Measured,
    /// The strongest models that no recorded history contradicts; empty if none was recorded, or
    /// nothing could show in it.
    pub models: Vec<String>,
    /// Anomalies that the recorded histories show; null if none was recorded.
    pub anomalies: Option<u64>,
    /// The same per million committed attempts; null if that isn't known.
    pub anomalies_per_million: Option<f64>,
    /// False if a history contradicts what is promised; null if that isn't known.
    pub verdict_kept: Option<bool>,
    /// False if an invariant is broken that the level promises; null if that isn't known.
    pub invariants_held: Option<bool>,
    /// False if either of the two is; null if neither could be checked.
    pub promise_kept: Option<bool>,
}

/// Values of figures, by the figures' names.
#[derive(Debug, Clone, PartialEq)]
struct Measured(Vec<(&'static str, Value)>);

/// The figures in a pair's JSON: the name there, and in the table of figures.
const MEMBERS: [(&str, &str); 7] = [
    ("p50_ms", "latency_p50_ms"),
    ("p95_ms", "latency_p95_ms"),
    ("p99_ms", "latency_p99_ms"),
    ("conflict_ratio", "conflict_ratio"),
    ("wasted_share", "wasted_share"),
    ("server_cpu_us", "server_cpu_us"),
    ("client_cpu_us", "client_cpu_us"),
];

impl Measured {
    fn number(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.number)
    }
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(MEMBERS.map(|(member, name)| (member, self.number(name))))
    }
}

/// A figure of B as a multiple of A's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairRatio {
    /// The ratio of the geometric means of the rounds.
    pub mean: f64,
    /// Lower end of the interval (Welch's t of the logarithms), which holds with 95 % for all ratios
    /// of the pair together (Bonferroni); null if it can't be computed.
    pub low: Option<f64>,
    /// Upper end of that interval; null if it can't be computed.
    pub high: Option<f64>,
    /// True if the difference is more than noise: the interval excludes 1, and the difference is
    /// larger than what equal cells differ by, where either result measured that.
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

impl PairError {
    /// Refuses two results whose numbers don't mean the same.
    fn check(a: &Document, b: &Document) -> Result<(), PairError> {
        let [a, b] = [a, b].map(|document| document.measurement_version);
        if a == b { Ok(()) } else { Err(PairError { a, b }) }
    }
}

/// Puts two results side by side. Summaries are computed from the rounds, whatever the documents
/// say. A/A cells are left out.
///
/// # Errors
/// [`PairError`], if the numbers of the two don't mean the same.
pub fn compare_results(a: &Document, b: &Document) -> Result<Pair, PairError> {
    PairError::check(a, b)?;
    let [a, b] = [a, b].map(|document| {
        let mut document = document.clone();
        summarise(&mut document);
        document
    });
    let cells = [&a, &b].map(|document| -> Vec<(Assignment, &Cell)> {
        let cells = document.cells.iter().filter(|cell| !cell.calibration);
        cells.map(|cell| (Assignment::of(cell), cell)).collect()
    });
    let names = Names::of(cells.iter().flatten().map(|(factors, _)| factors));
    let (pairs, only_in_a, only_in_b) = matched(&cells, &names);
    let between = between_levels::compared(&a, &pairs);
    let absolute = pairs.iter().map(Matched::samples);
    let ratios = together(&absolute.chain(between.iter().map(|one| one.samples.clone())).collect::<Vec<_>>());
    let (ratios, of_levels) = ratios.split_at(pairs.len());
    Ok(Pair {
        format: PAIR_FORMAT,
        format_version: PAIR_FORMAT_VERSION,
        warnings: differences::warnings(&a, &b),
        differences: differences::differences(&a, &b),
        a: Side::of(&a),
        b: Side::of(&b),
        cells: pairs.iter().zip(ratios).map(|(pair, ratio)| pair.judged(&names, [&a, &b], *ratio)).collect(),
        levels: between.iter().zip(of_levels).map(|(one, ratio)| one.judged(&names, *ratio)).collect(),
        only_in_a,
        only_in_b,
    })
}

type Sides<'a> = [Vec<(Assignment, &'a Cell)>; 2];

/// A cell that both results have.
struct Matched<'a> {
    factors: Assignment,
    a: &'a Cell,
    b: &'a Cell,
}

/// The cells that both have, and the names of the others.
fn matched<'a>(cells: &Sides<'a>, names: &Names) -> (Vec<Matched<'a>>, Vec<String>, Vec<String>) {
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
        pairs.push(Matched { factors: factors.clone(), a: cell, b: b[index].1 });
    }
    let rest = b.iter().zip(&taken).filter(|(_, taken)| !**taken);
    let only_in_b = rest.map(|((factors, _), _)| names.of_cell(factors)).collect();
    (pairs, only_in_a, only_in_b)
}

impl Matched<'_> {
    /// The rates of both.
    fn samples(&self) -> Samples {
        Samples::rates(self.a, self.b)
    }

    fn judged(&self, names: &Names, [a, b]: [&Document; 2], ratio: Option<PairRatio>) -> PairedCell {
        PairedCell {
            name: names.of_cell(&self.factors),
            others: names.others(&self.factors),
            factors: self.factors.clone(),
            a: Figures::of(a, self.a),
            b: Figures::of(b, self.b),
            ratio,
        }
    }
}

/// Measurements of two occasions that are compared.
#[derive(Debug, Clone)]
struct Samples {
    /// Those of B.
    of: Vec<f64>,
    /// Those of A.
    to: Vec<f64>,
    /// What equal cells differ by, as a distance of logarithms; 0 if it wasn't measured.
    noise: f64,
}

impl Samples {
    /// The rates of a cell on two occasions.
    fn rates(a: &Cell, b: &Cell) -> Samples {
        Samples { of: rates(b), to: rates(a), noise: noise(a).max(noise(b)) }
    }
}

/// The ratio of each pair of samples. Many ratios are many chances of a false alarm, so all are one
/// family.
fn together(samples: &[Samples]) -> Vec<Option<PairRatio>> {
    let judged = samples.iter().map(|one| {
        let ratio = independent_ratio(&one.of, &one.to, samples.len())?;
        let (mean, low, high) = (ratio.mean, ratio.low, ratio.high);
        Some(PairRatio { mean, low, high, significant: ratio.beyond(one.noise) })
    });
    judged.collect()
}

/// The noise beside this cell, as a distance of logarithms; 0 if it wasn't measured.
fn noise(cell: &Cell) -> f64 {
    cell.summary.ratio.as_ref().and_then(|ratio| ratio.noise).map_or(0.0, f64::ln_1p)
}

/// Committed transactions per second of each round that counts.
fn rates(cell: &Cell) -> Vec<f64> {
    let rounds = counted_rounds(cell).into_iter();
    rounds.filter_map(|round| rate(round, round.transactions.committed)).collect()
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
    pub fn to_json(&self) -> String {
        format!("{:#}\n", plain(self))
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

    /// The letter or number with what is known of the result, in words.
    pub fn describe(&self, letter: &str) -> String {
        let when = self.started_at.as_ref().map(|time| format!("measured {time}"));
        let incomplete = (!self.complete).then(|| "INCOMPLETE".to_owned());
        let name = Some(self.name.clone()).filter(|name| !name.is_empty());
        let parts = [name, Some(self.server.clone()), when, incomplete];
        format!("{letter}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Figures {
    /// The value of a figure, if it was measured.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.measured.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The same as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.measured.number(name)
    }

    fn of(document: &Document, cell: &Cell) -> Figures {
        let summary = &cell.summary;
        let measured = FIGURES.iter().filter_map(|figure| {
            let value = figure.measured(document, cell).ok()?;
            Some((figure.name, value))
        });
        let verdict = summary.verdict.as_ref();
        let kept = [verdict.and_then(|verdict| verdict.kept), summary.invariants_held];
        Figures {
            rounds: summary.rounds,
            tps: summary.tps,
            measured: Measured(measured.collect()),
            anomalies: verdict.map(|verdict| verdict.anomalies),
            anomalies_per_million: verdict.and_then(|verdict| verdict.anomalies_per_million),
            verdict_kept: kept[0],
            invariants_held: kept[1],
            models: match Proof::of(cell) {
                Proof::Models(models)
                | Proof::AsFarAsSeen(models)
                | Proof::Unprotected(models)
                | Proof::Shown(models) => models,
                Proof::Unproved | Proof::Withheld | Proof::NothingShared => Vec::new(),
            },
            promise_kept: kept.into_iter().flatten().reduce(|one, other| one && other),
        }
    }
}
