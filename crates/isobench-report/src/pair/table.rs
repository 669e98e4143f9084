//! The columns of a pair's table, for all renderings that people read: A above B in each row.
//!
//! Not here: widths, lines, Markdown.

use super::{Figures, PairedCell};
use crate::numbers::{MISSING, optional, percent, short};

/// One column.
pub struct Column {
    /// The first line of the heading.
    pub title: &'static str,
    /// The second line of the heading.
    pub unit: &'static str,
    /// True for numbers, which stand at the right.
    pub right: bool,
    /// The lines of a cell: A's, B's.
    pub show: fn(&PairedCell) -> Vec<String>,
}

/// The columns.
pub static COLUMNS: [Column; 11] = [
    Column { title: "cell", unit: "", right: false, show: name },
    Column { title: "", unit: "", right: false, show: |_| vec!["A".to_owned(), "B".to_owned()] },
    Column {
        title: "committed",
        unit: "per s",
        right: true,
        show: |cell| both(cell, |figures| optional(figures.tps.mean)),
    },
    Column { title: "B ÷ A", unit: "", right: true, show: ratio },
    Column {
        title: "conflict",
        unit: "ratio",
        right: true,
        show: |cell| both(cell, |figures| share(figures.conflict_ratio)),
    },
    Column {
        title: "wasted",
        unit: "time",
        right: true,
        show: |cell| both(cell, |figures| share(figures.wasted_share)),
    },
    Column {
        title: "p50",
        unit: "ms",
        right: true,
        show: |cell| both(cell, |figures| optional(figures.p50_ms)),
    },
    Column {
        title: "p95",
        unit: "ms",
        right: true,
        show: |cell| both(cell, |figures| optional(figures.p95_ms)),
    },
    Column {
        title: "p99",
        unit: "ms",
        right: true,
        show: |cell| both(cell, |figures| optional(figures.p99_ms)),
    },
    Column {
        title: SERVER_CPU,
        unit: "µs per tx",
        right: true,
        show: |cell| both(cell, |figures| optional(figures.server_cpu_us)),
    },
    Column { title: "verdict", unit: "", right: false, show: |cell| both(cell, verdict) },
];

/// The title of the column that only results with the server's side have.
const SERVER_CPU: &str = "server CPU";

/// The columns that have something to show.
pub fn columns(cells: &[PairedCell]) -> Vec<&'static Column> {
    let known = cells.iter().any(|cell| cell.a.server_cpu_us.or(cell.b.server_cpu_us).is_some());
    COLUMNS.iter().filter(|column| known || column.title != SERVER_CPU).collect()
}

fn both(cell: &PairedCell, show: fn(&Figures) -> String) -> Vec<String> {
    vec![show(&cell.a), show(&cell.b)]
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| MISSING.to_owned(), percent)
}

/// The ratio stands beside B, its interval below.
fn ratio(cell: &PairedCell) -> Vec<String> {
    let Some(ratio) = cell.ratio else { return vec![String::new(), MISSING.to_owned()] };
    let ends = ratio.low.zip(ratio.high);
    let word = match (ratio.significant, ends) {
        (_, None) => "?",
        (false, _) => "noise",
        (true, _) if ratio.mean < 1.0 => "less",
        (true, _) => "more",
    };
    let mut lines = vec![String::new(), format!("{} {word}", short(ratio.mean))];
    lines.extend(ends.map(|(low, high)| format!("{}–{}", short(low), short(high))));
    lines
}

fn verdict(figures: &Figures) -> String {
    let models = figures.models.join(" or ");
    let models = if models.is_empty() { "unproved".to_owned() } else { models };
    if figures.promise_kept == Some(false) { models + ", BROKEN" } else { models }
}

/// The level, and below it the other factors.
fn name(cell: &PairedCell) -> Vec<String> {
    let (level, rest) = cell.name.split_once(", ").unwrap_or((&cell.name, ""));
    vec![level.to_owned(), rest.to_owned()]
}
