//! The figures of a result by name, `[LEVEL.]METRIC[.low|.high]`, and requirements: thresholds on
//! them, `[LEVEL.]METRIC[.low|.high] OP NUMBER`.
//!
//! Here is how both are written. Not here: which figures there are, and how a result is judged by them
//! (`isobench-result`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::values::is_text;
use crate::{Selector, WrongValue};

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
    pub selector: Option<Selector>,
    /// The name of the figure, as written.
    pub figure: String,
    /// Which value of the figure.
    pub end: End,
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
        left_side(text.trim()).map_err(|why| WrongValue::new(text, &why))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.of, self.comparison.sign(), self.number)
    }
}

is_text!(Requirement);

impl FromStr for Requirement {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Requirement, WrongValue> {
        let wrong = |why: String| WrongValue::new(text, &why);
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
    // A single = is that of a selector.
    let sign_at = |(at, _)| {
        let (sign, comparison) = SIGNS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
        Some((at, *sign, *comparison))
    };
    text.match_indices(['<', '>', '=', '!']).find_map(sign_at)
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

/// The parts before the sign. A name may have dots; what stands before the first one is a selector, if
/// it says which cells.
fn left_side(text: &str) -> Result<CellFigure, String> {
    let ends = [(".low", End::Low), (".high", End::High), (".mean", End::Mean)];
    let named = ends.into_iter().find_map(|(suffix, end)| Some((text.strip_suffix(suffix)?.trim(), end)));
    let (name, end) = named.unwrap_or((text, End::Mean));
    let selected =
        name.split_once('.').and_then(|(before, after)| Some((before.parse().ok()?, after.trim())));
    let (selector, figure) = match selected {
        Some((selector, figure)) => (Some(selector), figure),
        None => (None, name),
    };
    if figure.is_empty() {
        return Err("it names no metric".to_owned());
    }
    Ok(CellFigure { selector, figure: figure.to_owned(), end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_isolation::Level;
    use proptest::prelude::*;

    fn read(text: &str) -> Requirement {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> String {
        text.parse::<Requirement>().expect_err(text).to_string()
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
            (">= 5", "names no metric"),
            ("ser. >= 5", "names no metric"),
            ("p99 <= 50ms", "\"50ms\" isn't a number"),
            ("p99 <= inf", "isn't a number"),
            ("p99 <= NaN", "isn't a number"),
            ("tps >=", "\"\" isn't a number"),
            ("tps >== 1", "isn't a number"),
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
        let message = "".parse::<CellFigure>().expect_err("nothing").to_string();
        assert_eq!(message, "\"\": it names no metric");
    }

    #[test]
    fn what_selects_no_cells_is_part_of_the_name() {
        for (text, selector, figure) in [
            ("rr.p99.9", Some("repeatable read"), "p99.9"),
            ("p99.9", None, "p99.9"),
            ("serialisable.tps", None, "serialisable.tps"),
            ("ser+.tps", None, "ser+.tps"),
            ("ser+x . y-z", Some("serializable+x"), "y-z"),
            ("ser+x+clients=8+rows=1.tps", Some("serializable+x+clients=8+rows=1"), "tps"),
            ("ser+rows=1.tps", Some("serializable+rows=1"), "tps"),
            ("ser+clients=x.tps", None, "ser+clients=x.tps"),
        ] {
            let of = text.parse::<CellFigure>().unwrap();
            let selected = of.selector.map(|selector| selector.to_string());
            assert_eq!((selected.as_deref(), of.figure.as_str()), (selector, figure), "{text}");
        }
        assert!("ser+".parse::<Selector>().unwrap_err().to_string().contains("nothing after +"));
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
        let varied = proptest::collection::btree_map("[a-z][a-z-]{0,6}", "[a-z0-9]{1,5}", 0..3);
        let selector =
            (level, proptest::option::of("[a-z][a-z-]{0,12}"), proptest::option::of(1..99_u32), varied)
                .prop_map(|(level, strategy, clients, mut varied)| {
                    varied.remove("clients");
                    Selector { level: Some(level.name().to_owned()), strategy, clients, varied }
                });
        let number = proptest::num::f64::NORMAL | proptest::num::f64::POSITIVE;
        (proptest::option::of(selector), "[a-z][a-z_]{0,12}9", 0..3_usize, 0..SIGNS.len(), number).prop_map(
            |(selector, figure, end, sign, number)| {
                let end = [End::Mean, End::Low, End::High][end];
                let of = CellFigure { selector, figure, end };
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
