//! The evidence that the answer rests on: for each level, with each strategy, what its rounds show
//! about safety and cost.
//!
//! Not here: what follows from it (`rules`), and the sentences (`words`).

use crate::document::{AnomalyCount, Cell, Document, FlagKind, RatioToFirst};
use crate::factors::strategies_vary;
use crate::summarise::between;

/// One level, with one strategy, among which an application may choose.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// Its rounds.
    pub cell: &'a Cell,
    /// The level, and the strategy where the document has several: `read committed with retry`.
    pub name: String,
    /// What its rounds show about safety.
    pub safety: Safety<'a>,
}

/// What a cell's rounds show about safety, the gravest first.
#[derive(Debug, Clone, PartialEq)]
pub enum Safety<'a> {
    /// The server runs another level than the one asked for, or doesn't say which.
    Mislabelled,
    /// Something happened that is impossible at the level; the flag's text.
    Contradicted(&'a str),
    /// A history or an invariant shows what the level promises to exclude.
    Broken,
    /// There is no verdict, for this reason.
    Withheld(&'a str),
    /// The server acknowledged work that it hadn't done.
    LostWork,
    /// Transactions show anomalies, or conditions don't hold, that the level doesn't promise to
    /// prevent.
    Unsafe,
    /// No history was recorded.
    Unchecked,
    /// In the histories of this many committed transactions nothing was found, and no condition
    /// was violated.
    Safe(u64),
}

/// The candidates of a group of cells that differ in nothing but level and strategy.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The document.
    pub document: &'a Document,
    /// The candidates in the order of the table, A/A cells left out.
    pub candidates: Vec<Candidate<'a>>,
}

impl<'a> Evidence<'a> {
    /// The evidence of a group.
    pub fn of(document: &'a Document, group: &[&'a Cell]) -> Evidence<'a> {
        let candidates = group.iter().filter(|cell| !cell.calibration).map(|cell| Candidate {
            cell,
            name: name(document, cell),
            safety: Safety::of(cell),
        });
        Evidence { document, candidates: candidates.collect() }
    }

    /// The candidates in which nothing wrong was found, and which committed anything.
    ///
    /// Without any history, conditions that held everywhere prove nothing; if one is violated
    /// somewhere, it tells levels apart, and where all held is safe as far as they tell.
    pub fn safe(&self) -> Vec<&Candidate<'a>> {
        let safe = |candidate: &&Candidate<'_>| match candidate.safety {
            Safety::Safe(_) => true,
            Safety::Unchecked => self.by_conditions() && candidate.cell.summary.invariants_held == Some(true),
            _ => false,
        };
        self.candidates.iter().filter(|candidate| candidate.rate() > 0.0).filter(safe).collect()
    }

    /// True if nothing but conditions on the tables was checked, and one of them tells the levels
    /// apart.
    pub fn by_conditions(&self) -> bool {
        let judged = |candidate: &Candidate<'_>| candidate.cell.summary.verdict.is_some();
        !self.candidates.iter().any(judged)
            && self.candidates.iter().any(|candidate| candidate.safety == Safety::Unsafe)
    }

    /// The candidates with this safety.
    pub fn with(&self, is: fn(&Safety<'_>) -> bool) -> impl Iterator<Item = &Candidate<'a>> {
        self.candidates.iter().filter(move |candidate| is(&candidate.safety))
    }

    /// The ratio of two candidates' committed work, in the rounds that both have: the table's where
    /// the table has it.
    pub fn ratio(&self, of: &Candidate<'_>, to: &Candidate<'_>) -> Option<RatioToFirst> {
        let (cell, other) = (of.cell, to.cell);
        let by_level = cell.strategy() == other.strategy();
        let shown = if by_level { &cell.summary.ratio } else { &cell.summary.strategy_ratio };
        let same = |ratio: &&RatioToFirst| {
            if by_level {
                ratio.to == other.level.name()
            } else {
                ratio.to == other.strategy() && cell.level == other.level
            }
        };
        let family = self.candidates.len().saturating_sub(1).max(1);
        shown.as_ref().filter(same).cloned().or_else(|| between(self.document, cell, other, family))
    }

    /// True if two candidates' committed work can't be told apart, or too few rounds say anything.
    pub fn alike(&self, one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
        let shown = self.ratio(one, other).or_else(|| self.ratio(other, one));
        shown.is_none_or(|ratio| ratio.low.is_none() || !ratio.significant)
    }

    /// The candidate with the most committed work, by the ratios within rounds.
    pub fn fastest<'b>(&self, of: &[&'b Candidate<'a>]) -> Option<&'b Candidate<'a>> {
        let first = of.first()?;
        let times = |candidate: &Candidate<'_>| {
            let ratio = self.ratio(candidate, first).map(|ratio| ratio.mean);
            ratio.unwrap_or_else(|| candidate.rate() / first.rate())
        };
        of.iter().copied().max_by(|one, other| times(one).total_cmp(&times(other)))
    }
}

impl Candidate<'_> {
    /// Committed transactions per second; 0 if nothing was measured.
    pub fn rate(&self) -> f64 {
        self.cell.summary.tps.mean.unwrap_or(0.0)
    }

    /// The kinds of anomalies that the data show, the most frequent first.
    pub fn kinds(&self) -> Vec<&AnomalyCount> {
        let verdict = self.cell.summary.verdict.as_ref();
        let kinds = verdict.into_iter().flat_map(|verdict| &verdict.kinds);
        kinds.filter(|kind| kind.order == isobench_isolation::Order::Data.name()).collect()
    }
}

impl<'a> Safety<'a> {
    /// What a cell shows.
    pub fn of(cell: &'a Cell) -> Safety<'a> {
        let summary = &cell.summary;
        let verdict = summary.verdict.as_ref();
        let contradicted = summary.flags.iter().find(|flag| flag.kind == FlagKind::LevelContradicted);
        if cell.level.differs() {
            return Safety::Mislabelled;
        }
        if let Some(flag) = contradicted {
            return Safety::Contradicted(&flag.text);
        }
        if summary.invariants_held == Some(false) || verdict.is_some_and(|it| it.kept == Some(false)) {
            return Safety::Broken;
        }
        if let Some(reason) = verdict.and_then(|verdict| verdict.withheld.first()) {
            return Safety::Withheld(reason);
        }
        if cell.swallowed() > 0 {
            return Safety::LostWork;
        }
        if summary.violations > 0 || verdict.is_some_and(|verdict| verdict.anomalies > 0) {
            return Safety::Unsafe;
        }
        verdict.map_or(Safety::Unchecked, |verdict| Safety::Safe(verdict.committed))
    }
}

/// The level of a cell, and its strategy where the document has several.
pub fn name(document: &Document, cell: &Cell) -> String {
    let level = cell.level.name();
    if strategies_vary(document) { format!("{level} with {}", cell.strategy()) } else { level }
}
