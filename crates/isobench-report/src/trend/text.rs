//! A figure's trend on a terminal: a line for each result, with its value and interval on a scale
//! that all results of a series share; changes stand between the lines.

use unicode_width::UnicodeWidthStr;

use isobench_result::numbers::short;
use isobench_result::trend::table::{legend, shown};
use isobench_result::{Trend, TrendPoint, TrendSeries};

use crate::text::layout::wrap;

/// The least columns of a scale.
const NARROWEST: usize = 16;

/// The most columns of a scale.
const WIDEST: usize = 60;

pub fn render(trend: &Trend, width: usize) -> String {
    let mut lines = wrap(&trend.heading(), width, 2);
    for series in &trend.series {
        lines.push(String::new());
        lines.extend(wrap(&series.title(), width, 2));
        lines.extend(plot(series, width));
        lines.extend(series.said().iter().flat_map(|sentence| wrap(sentence, width, 2)));
    }
    if trend.series.is_empty() {
        lines.push("No result has a value, so there is nothing to show.".to_owned());
    }
    lines.push(String::new());
    for sentence in &trend.left_out {
        lines.extend(wrap(&format!("Left out: {sentence}"), width, 2));
    }
    if trend.series.iter().any(is_cut) {
        lines.extend(wrap("◂ ▸: an interval that extends beyond the scale.", width, 2));
    }
    for sentence in legend(trend) {
        lines.extend(wrap(&sentence, width, 2));
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n"
}

/// True if the scale doesn't hold all intervals.
fn is_cut(series: &TrendSeries) -> bool {
    let (least, most) = series.range();
    let ends = |point: &TrendPoint| point.low.zip(point.high);
    series.points.iter().filter_map(ends).any(|(low, high)| low < least || high > most)
}

fn plot(series: &TrendSeries, width: usize) -> Vec<String> {
    let labels: Vec<String> = series.points.iter().map(TrendPoint::label).collect();
    let values: Vec<String> = series.points.iter().map(shown).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
    let (of_labels, of_values) = (widest(&labels), widest(&values));
    let before = of_labels + 2 + of_values + 2;
    let scale = Scale::of(series, width.saturating_sub(before + 2).clamp(NARROWEST, WIDEST));
    let mut lines = vec![" ".repeat(before) + &scale.ends()];
    for (index, point) in series.points.iter().enumerate() {
        if let Some(change) = series.changes.iter().find(|change| change.at == index + 1) {
            lines.push(format!("── change: {} ──", change.said()));
        }
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
        let (label, value) = (&labels[index], &values[index]);
        lines.push(format!(
            "{label}{}  {}{value}  {}",
            pad(label, of_labels),
            pad(value, of_values),
            scale.drawn(point)
        ));
    }
    lines
}

/// A range of values over a number of columns.
struct Scale {
    low: f64,
    high: f64,
    columns: usize,
}

impl Scale {
    fn of(series: &TrendSeries, columns: usize) -> Scale {
        let (low, high) = series.range();
        Scale { low, high, columns }
    }

    /// The values at both ends of the scale, or in its middle if they are the same.
    fn ends(&self) -> String {
        let (low, high) = (short(self.low), short(self.high));
        if low == high {
            return " ".repeat(self.columns / 2) + &low;
        }
        let gap = self.columns.saturating_sub(low.width() + high.width()).max(1);
        format!("{low}{}{high}", " ".repeat(gap))
    }

    fn column(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a few columns"
        )]
        let column = (share * (self.columns - 1) as f64).round() as usize;
        column.min(self.columns - 1)
    }

    /// The value as a disc on the line of its interval, which has an arrow where it goes on beyond the
    /// scale.
    fn drawn(&self, point: &TrendPoint) -> String {
        let mut letters = vec![' '; self.columns];
        if let Some((low, high)) = point.low.zip(point.high) {
            let ends = (if low < self.low { '◂' } else { '├' }, if high > self.high { '▸' } else { '┤' });
            let (low, high) = (self.column(low), self.column(high));
            letters[low..=high.max(low)].fill('─');
            letters[low] = ends.0;
            letters[high.max(low)] = ends.1;
        }
        letters[self.column(point.value)] = '●';
        letters.into_iter().collect()
    }
}
