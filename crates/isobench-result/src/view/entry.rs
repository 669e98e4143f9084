//! The entries of a table, and their lines.
//!
//! Adding a kind of entry is adding a variant and its lines. Not here: which entry stands where
//! (`columns`).

use super::{Line, Mark, Proof, Tables};
use crate::document::{Interval, PercentileInterval, RatioToFirst, are_alike};
use crate::numbers::{MISSING, count, optional, percent, short, thousands};

/// An entry of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Words.
    Text(Line),
    /// A number, if there is one.
    Number(Option<f64>),
    /// A count, if there is one.
    Count(Option<u64>),
    /// A share of 0 to 1, if there is one.
    Share(Option<f64>),
    /// A count of what is done, of a count that was planned.
    Progress {
        /// The count so far.
        done: u64,
        /// The planned count, if that is known.
        planned: Option<u64>,
    },
    /// A number that is exact, or the least that it can be.
    Least {
        /// The number.
        value: Option<f64>,
        /// True if it may be larger.
        at_least: bool,
    },
    /// A value, and below it its interval.
    Estimate(Estimate),
    /// A percentile of the latency. Only a page has room for its interval.
    Percentile {
        /// The percentile.
        value: Option<f64>,
        /// The same with its interval, if that is known.
        estimate: Option<Estimate>,
    },
    /// A share of 0 to any number by which something is more or less.
    Change(Estimate),
    /// A multiple, with whether it differs from 1.
    Ratio(Estimate, Significance),
    /// The mark of the cell that others are compared with.
    First,
    /// A level.
    Level(String, Vec<Mark>),
    /// The evidence for the promise: the histories, whether they keep it, the tables.
    Verdict(Proof, Option<bool>, Option<Tables>),
    /// Entries below one another.
    Stack(Vec<Entry>),
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The value, if there is one.
    pub value: Option<f64>,
    /// The ends of the interval, if they can be computed.
    pub ends: Option<(f64, f64)>,
}

/// The significance of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Significance {
    /// There are too few rounds.
    Unknown,
    /// It may be noise.
    Noise,
    /// It is less, by more than noise.
    Less,
    /// It is more, by more than noise.
    More,
}

/// The medium of a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Plain text: flags are lines like others.
    Text,
    /// A page: percentiles have intervals, flags are links that the page adds itself.
    Page,
}

impl Entry {
    /// Words that say: don't trust this, or what it says is bad.
    pub fn grave(text: impl Into<String>) -> Entry {
        Entry::Text(Line::grave(text))
    }

    /// A multiple of something, with its interval.
    pub fn ratio(value: f64, ends: Option<(f64, f64)>, significant: bool) -> Entry {
        let significance = Significance::of(value, ends, significant);
        Entry::Ratio(Estimate { value: Some(value), ends }, significance)
    }

    /// Its lines: the first is the value, the others explain it.
    pub fn lines(&self, medium: Medium) -> Vec<Line> {
        let line = |text: String| vec![Line::plain(text)];
        match self {
            Entry::Text(line) => vec![line.clone()],
            Entry::Number(number) => line(optional(*number)),
            Entry::Count(number) => line(counted(*number)),
            Entry::Share(share) => line(share.map_or_else(|| MISSING.to_owned(), percent)),
            Entry::Progress { done, planned } => line(format!("{} / {}", count(*done), counted(*planned))),
            Entry::Least { value, at_least } => {
                line(format!("{}{}", if *at_least { "≥" } else { "" }, optional(*value)))
            }
            Entry::Percentile { estimate: Some(estimate), .. } if medium == Medium::Page => estimate.lines(),
            Entry::Percentile { value, .. } => line(optional(*value)),
            Entry::Estimate(estimate) => estimate.lines(),
            Entry::Change(change) => {
                let ends = change.ends.map(|(low, high)| format!("{} to {}", signed(low), signed(high)));
                let value = change.value.map_or_else(|| MISSING.to_owned(), signed);
                std::iter::once(Line::plain(value)).chain(ends.map(Line::faint)).collect()
            }
            Entry::Ratio(ratio, significance) => ratio_lines(*ratio, *significance, medium),
            Entry::First => line("first".to_owned()),
            Entry::Level(name, marks) => {
                let shown = marks.iter().filter(|mark| medium == Medium::Text || !mark.is_flag());
                std::iter::once(Line::plain(name)).chain(shown.map(Mark::line)).collect()
            }
            Entry::Verdict(proof, kept, tables) => {
                let promise = kept.map(|kept| {
                    if kept { Line::plain("no forbidden anomaly") } else { Line::grave("FORBIDDEN ANOMALY") }
                });
                let tables = tables.iter().flat_map(Tables::lines);
                proof.lines().into_iter().chain(promise).chain(tables).collect()
            }
            Entry::Stack(entries) => entries.iter().flat_map(|entry| entry.lines(medium)).collect(),
        }
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Entry {
        Entry::Text(Line::plain(text))
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Entry {
        Entry::Text(Line::plain(text))
    }
}

impl From<u64> for Entry {
    fn from(number: u64) -> Entry {
        Entry::Count(Some(number))
    }
}

impl Estimate {
    fn lines(self) -> Vec<Line> {
        let ends = self.ends.map(|(low, high)| format!("{}–{}", short(low), short(high)));
        std::iter::once(Line::plain(optional(self.value))).chain(ends.map(Line::faint)).collect()
    }
}

impl From<Interval> for Estimate {
    fn from(interval: Interval) -> Estimate {
        Estimate { value: interval.mean, ends: interval.low.zip(interval.high) }
    }
}

impl From<&PercentileInterval> for Estimate {
    fn from(percentile: &PercentileInterval) -> Estimate {
        Estimate { value: Some(percentile.ms), ends: percentile.low.zip(percentile.high) }
    }
}

impl From<&RatioToFirst> for Estimate {
    fn from(ratio: &RatioToFirst) -> Estimate {
        Estimate { value: Some(ratio.mean), ends: ratio.low.zip(ratio.high) }
    }
}

impl Significance {
    /// The significance of a ratio, by whether its difference to 1 is significant.
    pub fn of(ratio: f64, ends: Option<(f64, f64)>, significant: bool) -> Significance {
        match (ends, significant) {
            (None, _) => Significance::Unknown,
            (_, false) => Significance::Noise,
            _ if ratio < 1.0 => Significance::Less,
            _ => Significance::More,
        }
    }
}

/// The words for a difference that may be noise.
pub const NO_DIFFERENCE: &str = "no measurable difference";

/// An interval of a multiple that spans this factor says nothing, so its ends aren't shown.
const WIDEST: f64 = 16.0;

/// A multiple as people read it, with the difference that it makes where there is one: 0.38 × (−62
/// %). A column of text has no room for words.
fn ratio_lines(ratio: Estimate, significance: Significance, medium: Medium) -> Vec<Line> {
    let mut lines = ratio.lines();
    if ratio.ends.is_some_and(|(low, high)| high > WIDEST * low) {
        lines.truncate(1);
    }
    let Some(value) = ratio.value else { return lines };
    let difference = match significance {
        Significance::Noise if medium == Medium::Page => {
            lines.push(Line::plain(NO_DIFFERENCE));
            String::new()
        }
        Significance::Noise if ratio.ends.is_some_and(are_alike) => " (≈)".to_owned(),
        // What can't be told apart isn't the same.
        Significance::Noise | Significance::Unknown => " (?)".to_owned(),
        Significance::Less | Significance::More => format!(" ({})", difference(value)),
    };
    lines[0] = Line::plain(format!("{} ×{difference}", short(value)));
    lines
}

/// What a multiple is less or more than one, in whole per cent where that isn't nothing, or
/// everything: −62 %.
fn difference(ratio: f64) -> String {
    let share = ratio - 1.0;
    if share.abs() < 0.0095 || (-1.0..-0.995).contains(&share) {
        return signed(share);
    }
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", thousands(share.abs() * 100.0))
}

fn counted(number: Option<u64>) -> String {
    number.map_or_else(|| MISSING.to_owned(), count)
}

/// A share with its sign: +60.0 %.
fn signed(share: f64) -> String {
    if share < 0.0 { format!("−{}", percent(-share)) } else { format!("+{}", percent(share)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::FlagKind;

    fn texts(entry: &Entry, medium: Medium) -> Vec<String> {
        entry.lines(medium).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn what_is_bad_is_grave_and_nothing_else() {
        let grave = [
            Mark::Incomplete { rounds: 2, planned: 3 },
            Mark::PromiseBroken,
            Mark::LostWork(0.5),
            Mark::Errored(1),
        ];
        let plain = [Mark::Again, Mark::Effective("BROKEN".to_owned()), Mark::Flag(FlagKind::Drift)];
        assert!(grave.iter().all(|mark| mark.line().is_grave()));
        assert!(!plain.iter().any(|mark| mark.line().is_grave()));
        let verdict = |kept: bool, tables: Tables| {
            let proof = Proof::Models(vec!["G-single".to_owned()]);
            let lines = Entry::Verdict(proof, Some(kept), Some(tables)).lines(Medium::Text);
            lines.into_iter().map(|line| (line.is_grave(), line.text)).collect::<Vec<_>>()
        };
        let line = |grave: bool, text: &str| (grave, text.to_owned());
        assert_eq!(
            verdict(false, Tables::Violated(12, None)),
            [line(false, "G-single"), line(true, "FORBIDDEN ANOMALY"), line(true, "VIOLATED 12")]
        );
        assert_eq!(
            verdict(true, Tables::Permitted(1, None)),
            [line(false, "G-single"), line(false, "no forbidden anomaly"), line(false, "1 violation")]
        );
        let stock = Some("units of stock".to_owned());
        assert_eq!(
            verdict(true, Tables::Permitted(1, stock.clone()))[2..],
            [line(false, "violated:"), line(false, "1 unit of stock")]
        );
        assert_eq!(
            verdict(true, Tables::Violated(1200, stock))[2..],
            [line(true, "VIOLATED:"), line(true, "1,200 units of stock")]
        );
    }

    #[test]
    fn a_page_has_intervals_where_text_has_flags() {
        let level = Entry::Level(
            "! serializable".to_owned(),
            vec![Mark::Flag(FlagKind::Drift), Mark::Effective("! x".to_owned())],
        );
        assert_eq!(texts(&level, Medium::Text), ["! serializable", "! drifts", "→ ! x"]);
        assert_eq!(texts(&level, Medium::Page), ["! serializable", "→ ! x"]);
        let estimate = Some(Estimate { value: Some(2.0), ends: Some((1.5, 2.5)) });
        let percentile = Entry::Percentile { value: Some(2.0), estimate };
        assert_eq!(texts(&percentile, Medium::Text), ["2.00"]);
        assert_eq!(texts(&percentile, Medium::Page), ["2.00", "1.50–2.50"]);
    }

    #[test]
    fn a_ratio_says_what_is_known_of_it() {
        let ratio = |value, ends, significant| texts(&Entry::ratio(value, ends, significant), Medium::Text);
        assert_eq!(ratio(0.5, None, true), ["0.50 × (?)"]);
        assert_eq!(ratio(0.5, Some((0.4, 1.1)), false), ["0.50 × (?)", "0.40–1.10"]);
        assert_eq!(ratio(0.52, Some((0.0001, 137_489.0)), false), ["0.52 × (?)"]);
        assert_eq!(ratio(1.01, Some((0.98, 1.04)), false), ["1.01 × (≈)", "0.98–1.04"]);
        assert_eq!(ratio(0.38, Some((0.3, 0.5)), true), ["0.38 × (−62 %)", "0.30–0.50"]);
        assert_eq!(ratio(2.1, Some((2.0, 2.2)), true), ["2.10 × (+110 %)", "2.00–2.20"]);
        let page = Entry::ratio(0.5, Some((0.4, 1.1)), false);
        assert_eq!(texts(&page, Medium::Page), ["0.50 ×", "0.40–1.10", "no measurable difference"]);
    }

    #[test]
    fn a_difference_is_never_rounded_to_nothing_or_to_everything() {
        for (ratio, said) in [
            (0.38, "−62 %"),
            (0.985, "−2 %"),
            (0.996, "−0.4 %"),
            (0.9999, "−<0.1 %"),
            (1.004, "+0.4 %"),
            (2.1, "+110 %"),
            (23.4, "+2,240 %"),
            (0.004, "−99.6 %"),
            (0.0001, "−>99.9 %"),
        ] {
            assert_eq!(difference(ratio), said, "{ratio}");
        }
    }
}
