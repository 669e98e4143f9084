//! The figures of a cell: one row for each, of which every table, requirement, trend and page of the
//! manual is a view.
//!
//! A figure has one name, that of JSON and CSV. Here is
//! what a figure is. Not here: which there are (`table`, a row for each), how one is asked for
//! (`wanted`), the arithmetic of summaries (`summarise`).

mod table;
mod wanted;

use isobench_plan::End;

use crate::document::{Cell, Document, Interval, Latency, RatioToFirst, Round, Summary};
use crate::numbers::{finite, optional, percent};

use crate::rounds::{counted_rounds, over_rounds};
pub use table::FIGURES;
pub use wanted::{Wanted, requirement, resolve, unknown_figure};

/// A figure of a cell.
pub struct Figure {
    /// Its name, wherever it is named.
    pub name: &'static str,
    /// Further names that are read, those of earlier versions among them. A `-` is read as `_`, too.
    pub aliases: &'static [&'static str],
    /// The two lines of a heading: what, and in which unit.
    pub heading: (&'static str, &'static str),
    /// Its unit, in a word or two.
    pub unit: &'static str,
    /// Its better direction.
    pub better: Better,
    /// Its name in a sentence.
    pub said: &'static str,
    /// Its definition with its unit, without a full stop.
    pub meaning: &'static str,
    /// What is counted, of which rounds, from when to when.
    pub population: &'static str,
    /// How a value is shown.
    pub shown: Shown,
    /// Its value in a cell.
    pub of_cell: OfCell,
    /// Its value in a round, where rounds have one.
    pub of_round: Option<OfRound>,
    /// Its column in the table of results, if it has one there.
    pub column: Option<InTable>,
}

/// The column of a figure in the table of results.
#[derive(Clone, Copy)]
pub struct InTable {
    /// True if the document has something for the column.
    pub when: fn(&Document) -> bool,
    /// The name in the legend, and what the column counts; empty where another column says it.
    pub legend: (&'static str, &'static str),
}

/// The better direction of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More of it is better.
    More,
    /// Less of it is better.
    Less,
    /// Neither is, by itself.
    Neither,
}

/// How a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As a number of three digits.
    Number,
    /// As a percentage.
    Share,
    /// As a whole number.
    Count,
}

/// The source of a cell's value.
#[derive(Clone, Copy)]
pub enum OfCell {
    /// The mean of the complete rounds, with its interval over them.
    Rounds,
    /// An estimate of the summary.
    Estimate(fn(&Summary) -> Interval),
    /// A ratio to the first of something, by whose name the first itself is known.
    Ratio(fn(&Summary) -> Option<&RatioToFirst>, fn(&Cell) -> String),
    /// A percentile of the latency, with its interval where that is known.
    Percentile(f64, fn(&Latency) -> Option<f64>),
    /// A number without an interval.
    Number(fn(&Document, &Cell) -> Measured),
}

/// The source of a round's value.
#[derive(Clone, Copy)]
pub enum OfRound {
    /// A number.
    Number(fn(&Round) -> Option<f64>),
    /// A count that every round has.
    Total(fn(&Round) -> u64),
    /// A count that a round may lack.
    Count(fn(&Round) -> Option<u64>),
}

/// The value of a figure in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The number, in the figure's unit.
    pub number: f64,
    /// Lower end of its 95 % interval, if that is known.
    pub low: Option<f64>,
    /// Upper end of that interval.
    pub high: Option<f64>,
    /// True if the true value may be larger.
    pub at_least: bool,
}

/// A value, or the reason why there is none.
pub type Measured = Result<Value, String>;

impl Figure {
    /// The figure of a name, or of an alias.
    pub fn named(name: &str) -> Option<&'static Figure> {
        let name = name.replace('-', "_");
        FIGURES.iter().find(|figure| figure.name == name || figure.aliases.contains(&name.as_str()))
    }

    /// The figure of a name that is in the table.
    ///
    /// # Panics
    /// It isn't: names in the code are those of the table.
    pub fn known(name: &str) -> &'static Figure {
        Figure::named(name).unwrap_or_else(|| panic!("no figure is called {name}"))
    }

    /// Its name for services that keep benchmarks: the shortest, with `-`, as the first versions
    /// wrote it. A series there is found by this name, so it stays.
    pub fn tracked(&self) -> String {
        self.aliases.first().unwrap_or(&self.name).replace('_', "-")
    }

    /// True if it has an interval, so that `.low` and `.high` can be named.
    pub fn has_interval(&self) -> bool {
        !matches!(self.of_cell, OfCell::Number(_))
    }

    /// Its value in a cell, or the reason why there is none.
    ///
    /// # Errors
    /// It wasn't measured, in words that follow the name of the cell.
    pub fn measured(&self, document: &Document, cell: &Cell) -> Measured {
        let summary = &cell.summary;
        match self.of_cell {
            OfCell::Rounds => self.over_rounds(cell),
            OfCell::Estimate(of) => estimate(of(summary)),
            OfCell::Ratio(of, name) => ratio(of(summary), &name(cell)),
            OfCell::Percentile(percent, of) => percentile(summary, percent, of),
            OfCell::Number(of) => of(document, cell),
        }
    }

    /// One value of the figure in a cell: that itself, or an end of its interval.
    ///
    /// # Errors
    /// It wasn't measured, or has no interval.
    pub fn end(&self, document: &Document, cell: &Cell, end: End) -> Measured {
        let found = self.measured(document, cell)?;
        let number = match end {
            End::Mean => Some(found.number),
            End::Low => found.low,
            End::High => found.high,
        };
        let number = number.ok_or_else(|| "has no interval; measure more rounds, or longer".to_owned())?;
        Ok(Value { number, ..found })
    }

    /// The ratio that it is, where it is one; what that is to is part of the number.
    pub fn reference<'a>(&self, cell: &'a Cell) -> Option<&'a RatioToFirst> {
        match self.of_cell {
            OfCell::Ratio(of, _) => of(&cell.summary),
            _ => None,
        }
    }

    /// A value of it as text.
    pub fn text(&self, value: f64) -> String {
        match self.shown {
            Shown::Share => percent(value),
            Shown::Number | Shown::Count => optional(finite(value)),
        }
    }

    fn over_rounds(&self, cell: &Cell) -> Measured {
        let Some(of_round) = self.of_round else { return unmeasured() };
        let rounds = counted_rounds(cell);
        let values: Vec<f64> = rounds.iter().filter_map(|round| of_round.number(round)).collect();
        over_rounds(&values).map_or_else(unmeasured, estimate)
    }
}

impl OfRound {
    /// The value as a number.
    pub fn number(self, round: &Round) -> Option<f64> {
        match self {
            OfRound::Number(of) => of(round),
            OfRound::Total(of) => Some(of(round) as f64),
            OfRound::Count(of) => of(round).map(|count| count as f64),
        }
    }
}

/// The reason why most figures are missing.
const UNMEASURED: &str = "wasn't measured";

fn unmeasured<T>() -> Result<T, String> {
    Err(UNMEASURED.to_owned())
}

fn estimate(interval: Interval) -> Measured {
    let Interval { mean, low, high, .. } = interval;
    mean.map_or_else(unmeasured, |number| Ok(Value { number, low, high, at_least: false }))
}

/// The first one is exactly as fast as itself.
fn ratio(ratio: Option<&RatioToFirst>, name: &str) -> Measured {
    match ratio {
        None => unmeasured(),
        Some(ratio) if ratio.to == name => {
            Ok(Value { number: 1.0, low: Some(1.0), high: Some(1.0), at_least: false })
        }
        Some(ratio) => Ok(Value { number: ratio.mean, low: ratio.low, high: ratio.high, at_least: false }),
    }
}

fn percentile(summary: &Summary, percent: f64, of: fn(&Latency) -> Option<f64>) -> Measured {
    let found = summary.percentiles.iter().find(|found| (found.percent - percent).abs() < 1e-9);
    let interval = found.map_or(Interval { mean: of(&summary.latency_ms), ..Interval::default() }, |found| {
        Interval { mean: Some(found.ms), low: found.low, high: found.high, ..Interval::default() }
    });
    estimate(interval)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_has_its_own_names_and_says_what_it_is() {
        let mut names = BTreeSet::new();
        for figure in FIGURES {
            for name in std::iter::once(&figure.name).chain(figure.aliases) {
                assert!(names.insert(*name), "{name} is there twice");
                assert!(Figure::named(name).is_some_and(|found| std::ptr::eq(found, figure)), "{name}");
                assert!(Figure::named(&name.replace('_', "-")).is_some(), "{name} with -");
            }
            assert!(!figure.name.contains(['.', '-', ' ']), "{}", figure.name);
            for text in [figure.unit, figure.said, figure.meaning, figure.population] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", figure.name);
            }
            assert!(!figure.heading.0.is_empty(), "{}", figure.name);
            let is_of_rounds = matches!(figure.of_cell, OfCell::Rounds);
            assert!(!is_of_rounds || figure.of_round.is_some(), "{} has no value at all", figure.name);
            for text in [format!("{} >= 1", figure.name), format!("ser+x.{} >= 1", figure.name)] {
                assert!(requirement(&text).is_ok_and(|read| read.of.figure == figure.name), "{text}");
            }
            let of_end = requirement(&format!("rr.{}.low == 2", figure.name));
            assert_eq!(of_end.is_ok(), figure.has_interval(), "{}", figure.name);
        }
    }
}
