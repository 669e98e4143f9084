//! The figures of a result by name, `[LEVEL.]METRIC[.low|.high]`, and requirements: thresholds on
//! them, `[LEVEL.]METRIC[.low|.high] OP NUMBER`.
//!
//! Here is how both are written. Not here: how a result is judged by them (`isobench-report`).

use std::fmt;
use std::str::FromStr;

use isobench_isolation::Level;
use isobench_suggest::did_you_mean;
use serde::{Deserialize, Serialize};

use crate::WrongValue;

/// A threshold that a result must keep, written as `serializable.ratio.low >= 0.5`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Requirement {
    /// The figure, and the cells that must keep it.
    pub of: CellFigure,
    /// How it must compare with the number.
    pub comparison: Comparison,
    /// The number, in the figure's unit; finite.
    pub number: f64,
}

/// A figure of some cells, written as `serializable.ratio.low`: what a threshold is set for, and what
/// a trend shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFigure {
    /// The cells; `None`: all.
    pub selector: Option<CellSelector>,
    /// The figure.
    pub figure: Figure,
    /// Which value of the figure.
    pub end: End,
}

/// A level, with or without a strategy: `serializable+for-update`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellSelector {
    /// The level.
    pub level: Level,
    /// The strategy; `None`: any.
    pub strategy: Option<String>,
}

/// A figure of a cell that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Figure {
    /// Committed transactions per second.
    Tps,
    /// Committed transactions per second as a multiple of the first level's.
    Ratio,
    /// Anomalies that the histories show.
    Anomalies,
    /// The same per million committed attempts.
    AnomaliesPerMillion,
    /// Violations of invariants.
    Violations,
    /// The median latency.
    P50,
    /// The 95th percentile of the latency.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// Attempts ended by a conflict ÷ attempts.
    ConflictRatio,
    /// Further attempts per transaction.
    Retries,
    /// Wasted ÷ busy time.
    Wasted,
    /// Transactions given up.
    GivenUp,
    /// Transactions whose work was swallowed.
    Swallowed,
}

/// A figure with its name and its meaning.
#[derive(Debug, Clone, Copy)]
pub struct FigureFacts {
    /// The figure.
    pub figure: Figure,
    /// Its name.
    pub name: &'static str,
    /// Its meaning and its unit, without a full stop.
    pub meaning: &'static str,
    /// True if it has an interval, so that `.low` and `.high` can be named.
    pub has_interval: bool,
    /// Its unit, in a word or two.
    pub unit: &'static str,
    /// True if more of it is better.
    pub more_is_better: bool,
}

/// The figures, in the order of the manual.
pub static FIGURES: [FigureFacts; 14] = [
    row(Figure::Tps, "tps", "committed transactions per second", true, "per s"),
    row(
        Figure::Ratio,
        "ratio",
        "committed transactions per second as a multiple of the first level's",
        true,
        "of the first level",
    ),
    row(Figure::Anomalies, "anomalies", "anomalies that the recorded histories show", false, "anomalies"),
    row(
        Figure::AnomaliesPerMillion,
        "anomalies-per-million",
        "anomalies per million committed attempts",
        false,
        "per million",
    ),
    row(Figure::Violations, "violations", "violations of invariants, promised or not", false, "violations"),
    row(Figure::P50, "p50", "median latency in milliseconds", true, "ms"),
    row(Figure::P95, "p95", "95th percentile of the latency in milliseconds", true, "ms"),
    row(Figure::P99, "p99", "99th percentile of the latency in milliseconds", true, "ms"),
    row(Figure::P999, "p99.9", "99.9th percentile of the latency in milliseconds", true, "ms"),
    row(
        Figure::ConflictRatio,
        "conflict-ratio",
        "attempts ended by a conflict as a share of all attempts",
        false,
        "of attempts",
    ),
    row(Figure::Retries, "retries", "further attempts per transaction", false, "per transaction"),
    row(
        Figure::Wasted,
        "wasted",
        "time of attempts that didn't commit as a share of the time of all attempts",
        false,
        "of time",
    ),
    row(Figure::GivenUp, "given-up", "transactions given up", false, "transactions"),
    row(
        Figure::Swallowed,
        "swallowed",
        "transactions acknowledged with their work undone",
        false,
        "transactions",
    ),
];

const fn row(
    figure: Figure,
    name: &'static str,
    meaning: &'static str,
    has_interval: bool,
    unit: &'static str,
) -> FigureFacts {
    let more_is_better = matches!(figure, Figure::Tps | Figure::Ratio);
    FigureFacts { figure, name, meaning, has_interval, unit, more_is_better }
}

/// Which value of a figure is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// The value itself.
    #[default]
    Mean,
    /// The lower end of its 95 % interval.
    Low,
    /// The upper end.
    High,
}

/// How a value must compare with the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// At least.
    AtLeast,
    /// At most.
    AtMost,
    /// Equal.
    Equal,
    /// Anything else.
    Other,
    /// Above.
    Above,
    /// Below.
    Below,
}

/// The signs, those of two characters first, so that none is taken for a shorter one.
static SIGNS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    ("!=", Comparison::Other),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl Comparison {
    /// True if the value compares with the number as it must.
    #[expect(clippy::float_cmp, reason = "equal is what the requirement says; it is meant for counts")]
    pub fn holds(self, value: f64, number: f64) -> bool {
        match self {
            Comparison::AtLeast => value >= number,
            Comparison::AtMost => value <= number,
            Comparison::Equal => value == number,
            Comparison::Other => value != number,
            Comparison::Above => value > number,
            Comparison::Below => value < number,
        }
    }

    fn sign(self) -> &'static str {
        SIGNS.iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| sign)
    }
}

impl Figure {
    /// Its name and its meaning.
    pub fn facts(self) -> &'static FigureFacts {
        // The table has a row for each figure, which a test confirms.
        FIGURES.iter().find(|row| row.figure == self).unwrap_or(&FIGURES[0])
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

impl fmt::Display for CellSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        self.strategy.as_ref().map_or(Ok(()), |strategy| write!(f, "+{strategy}"))
    }
}

impl fmt::Display for CellFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(selector) = &self.selector {
            write!(f, "{selector}.")?;
        }
        let end = match self.end {
            End::Mean => "",
            End::Low => ".low",
            End::High => ".high",
        };
        write!(f, "{}{end}", self.figure)
    }
}

impl FromStr for CellFigure {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<CellFigure, WrongValue> {
        left_side(text.trim()).map_err(|why| WrongValue(format!("\"{text}\": {why}")))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.of, self.comparison.sign(), self.number)
    }
}

impl FromStr for Requirement {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Requirement, WrongValue> {
        let wrong = |why: String| WrongValue(format!("\"{text}\": {why}"));
        let Some((at, sign, comparison)) = sign_in(text) else {
            return Err(wrong(
                "isn't of the form [LEVEL.]METRIC[.low|.high] OP NUMBER, where OP is >=, <=, >, <, == or !=, such \
                 as \"serializable.ratio.low >= 0.5\" or \"anomalies == 0\""
                    .to_owned(),
            ));
        };
        let of = left_side(text[..at].trim()).map_err(wrong)?;
        let number = number(text[at + sign.len()..].trim()).map_err(wrong)?;
        Ok(Requirement { of, comparison, number })
    }
}

/// The first sign in a text, and where it is.
fn sign_in(text: &str) -> Option<(usize, &'static str, Comparison)> {
    let at = text.find(['<', '>', '=', '!'])?;
    let (sign, comparison) = SIGNS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
    Some((at, sign, *comparison))
}

/// A number; `12%` is 0.12.
fn number(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.strip_suffix('%') {
        Some(digits) => (digits.trim(), 100.0),
        None => (text, 1.0),
    };
    let number = digits.parse::<f64>().map(|number| number / unit).ok().filter(|number| number.is_finite());
    // Minus zero would be written back as "-0".
    number.map(|number| number + 0.0).ok_or_else(|| {
        format!(
            "\"{text}\" isn't a number, such as 0.5, 1000 or 20%; units can't be named, latencies are in ms"
        )
    })
}

/// The parts before the sign.
fn left_side(text: &str) -> Result<CellFigure, String> {
    let ends = [(".low", End::Low), (".high", End::High), (".mean", End::Mean)];
    let named = ends.into_iter().find_map(|(suffix, end)| Some((text.strip_suffix(suffix)?.trim(), end)));
    let (name, end) = named.unwrap_or((text, End::Mean));
    let (selector, figure) = match figure(name) {
        Some(figure) => (None, figure),
        None => selected(name)?,
    };
    if end != End::Mean && !figure.facts().has_interval {
        let with: Vec<&str> = FIGURES.iter().filter(|row| row.has_interval).map(|row| row.name).collect();
        return Err(format!(
            "{figure} has no interval, so neither .low nor .high; those with one are {}",
            with.join(", ")
        ));
    }
    Ok(CellFigure { selector, figure, end })
}

/// `LEVEL[+STRATEGY].METRIC`. Neither level nor strategy has a dot; a metric may.
fn selected(name: &str) -> Result<(Option<CellSelector>, Figure), String> {
    let (before, after) = name.split_once('.').unwrap_or(("", name));
    let selector = selector(before);
    match (figure(after.trim()), selector) {
        (Some(figure), Ok(selector)) => Ok((Some(selector), figure)),
        (Some(_), Err(why)) => Err(why),
        (None, Ok(_)) => Err(unknown_figure(after.trim())),
        (None, Err(_)) => Err(unknown_figure(name)),
    }
}

fn figure(name: &str) -> Option<Figure> {
    FIGURES.iter().find(|row| row.name == name).map(|row| row.figure)
}

fn selector(text: &str) -> Result<CellSelector, String> {
    let (level, strategy) = match text.split_once('+') {
        Some((level, strategy)) => (level, Some(strategy.trim().to_owned())),
        None => (text, None),
    };
    if strategy.as_ref().is_some_and(String::is_empty) {
        return Err(format!("\"{text}\" names no strategy after +"));
    }
    let level = level.parse::<Level>().map_err(|error| error.to_string())?;
    Ok(CellSelector { level, strategy })
}

fn unknown_figure(name: &str) -> String {
    let names: Vec<&str> = FIGURES.iter().map(|row| row.name).collect();
    let hint = did_you_mean(name, names.iter().copied());
    format!("unknown metric \"{name}\"; use one of {}{hint}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Requirement {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> String {
        text.parse::<Requirement>().expect_err(text).to_string()
    }

    #[test]
    fn every_figure_has_one_row_and_its_own_name() {
        for row in &FIGURES {
            assert_eq!(row.figure.facts().name, row.name);
            let required = read(&format!("{} >= 1", row.name));
            let of = CellFigure { selector: None, figure: row.figure, end: End::Mean };
            assert_eq!(required.of, of);
            assert_eq!(row.name.parse(), Ok(of));
            let required = read(&format!("rc.{}<7", row.name));
            assert_eq!((required.of.figure, required.comparison), (row.figure, Comparison::Below));
            assert_eq!(format!("rr.{}.low == 2", row.name).parse::<Requirement>().is_ok(), row.has_interval);
            assert!(!row.meaning.ends_with('.') && !row.meaning.is_empty());
        }
    }

    #[test]
    fn a_level_can_be_written_in_every_way() {
        for (text, written) in [
            ("ser.ratio.low>=.5", "serializable.ratio.low >= 0.5"),
            ("READ COMMITTED.tps > 1e3", "read committed.tps > 1000"),
            ("read-committed . p99.9.high <= 50", "read committed.p99.9.high <= 50"),
            ("serializable+for-update.anomalies == 0", "serializable+for-update.anomalies == 0"),
            ("tps.mean != -0", "tps != 0"),
            ("wasted<20 %", "wasted < 0.2"),
            ("p99.9 <= 12.5", "p99.9 <= 12.5"),
        ] {
            assert_eq!(read(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_there_is() {
        for (text, said) in [
            ("", "[LEVEL.]METRIC"),
            ("tps", "OP is >=, <=, >, <, == or !="),
            ("tps = 5", "OP is"),
            ("tsp >= 5", "unknown metric \"tsp\"; use one of tps, ratio, anomalies,"),
            ("anomalie == 0", "did you mean \"anomalies\"?"),
            ("ser.conflict-rate < 1", "unknown metric \"conflict-rate\""),
            ("ser.conflict-rate < 1", "did you mean \"conflict-ratio\"?"),
            ("serialisable.tps > 1", "unknown isolation level \"serialisable\""),
            ("serialisable.tps > 1", "did you mean \"serializable\"?"),
            ("p99.8 < 1", "unknown metric \"p99.8\""),
            ("anomalies.low == 0", "anomalies has no interval"),
            ("ser+.tps > 1", "no strategy after +"),
            ("p99 <= 50ms", "\"50ms\" isn't a number"),
            ("p99 <= inf", "isn't a number"),
            ("p99 <= NaN", "isn't a number"),
            ("tps >=", "\"\" isn't a number"),
            ("tps >== 1", "isn't a number"),
            (".tps > 1", "unknown isolation level \"\""),
        ] {
            let message = refused(text);
            assert!(message.contains(said) && message.starts_with(&format!("\"{text}\": ")), "{message}");
        }
    }

    #[test]
    fn a_figure_is_named_without_a_threshold_too() {
        let figure = "ser+for-update.p99.9.low".parse::<CellFigure>();
        assert_eq!(
            figure.map(|figure| figure.to_string()),
            Ok("serializable+for-update.p99.9.low".to_owned())
        );
        for (text, said) in
            [("tsp", "unknown metric \"tsp\""), ("tps >= 1", "unknown metric"), ("", "unknown metric")]
        {
            let message = text.parse::<CellFigure>().expect_err(text).to_string();
            assert!(message.contains(said) && message.starts_with(&format!("\"{text}\": ")), "{message}");
        }
    }

    #[test]
    fn signs_mean_what_they_mean() {
        for (sign, below, equal, above) in [
            (">=", false, true, true),
            ("<=", true, true, false),
            ("==", false, true, false),
            ("!=", true, false, true),
            (">", false, false, true),
            ("<", true, false, false),
        ] {
            let comparison = read(&format!("tps {sign} 2")).comparison;
            let holds = [1.0, 2.0, 3.0].map(|value| comparison.holds(value, 2.0));
            assert_eq!(holds, [below, equal, above], "{sign}");
        }
    }

    fn any_requirement() -> impl Strategy<Value = Requirement> {
        let level = (0..4_usize).prop_map(|index| Level::ALL[index]);
        let selector = (level, proptest::option::of("[a-z][a-z-]{0,12}"))
            .prop_map(|(level, strategy)| CellSelector { level, strategy });
        let number = proptest::num::f64::NORMAL | proptest::num::f64::POSITIVE;
        (proptest::option::of(selector), 0..FIGURES.len(), 0..3_usize, 0..SIGNS.len(), number).prop_map(
            |(selector, row, end, sign, number)| {
                let ends = [End::Mean, End::Low, End::High];
                let end = if FIGURES[row].has_interval { ends[end] } else { End::Mean };
                let of = CellFigure { selector, figure: FIGURES[row].figure, end };
                Requirement { of, comparison: SIGNS[sign].1, number }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_printed_is_parsed_as_the_same(required in any_requirement()) {
            prop_assume!(required.number.is_finite());
            let text = required.to_string();
            prop_assert_eq!(read(&text), required.clone());
            let of = required.of;
            prop_assert_eq!(of.to_string().parse::<CellFigure>(), Ok(of));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Requirement>();
        }
    }
}
