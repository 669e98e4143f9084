//! The columns of a pair's table, for all renderings that people read: A above B in each row.
//!
//! Not here: widths, lines, Markdown.

use super::{Figures, PairedCell};
use crate::view::{Entry, Heading, Line, Table};

/// One column.
struct PairColumn {
    /// The first line of the heading.
    title: &'static str,
    /// The second line of the heading.
    unit: &'static str,
    /// True for numbers, which are right-aligned.
    right: bool,
    /// The entry of a cell: that of A, below it that of B.
    show: fn(&PairedCell) -> Entry,
    /// True if a pair's cells have something for the column.
    when: fn(&[PairedCell]) -> bool,
}

/// The columns.
static COLUMNS: [PairColumn; 11] = [
    PairColumn { title: "cell", unit: "", right: false, when: always, show: name },
    PairColumn {
        title: "",
        unit: "",
        right: false,
        when: always,
        show: |_| Entry::Stack(vec!["A".into(), "B".into()]),
    },
    PairColumn {
        title: "committed",
        unit: "per s",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Number(figures.tps.mean)),
    },
    PairColumn { title: "B ÷ A", unit: "", right: true, when: always, show: ratio },
    PairColumn {
        title: "conflict",
        unit: "ratio",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Share(figures.conflict_ratio)),
    },
    PairColumn {
        title: "wasted",
        unit: "time",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Share(figures.wasted_share)),
    },
    PairColumn {
        title: "p50",
        unit: "ms",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Number(figures.p50_ms)),
    },
    PairColumn {
        title: "p95",
        unit: "ms",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Number(figures.p95_ms)),
    },
    PairColumn {
        title: "p99",
        unit: "ms",
        right: true,
        when: always,
        show: |cell| both(cell, |figures| Entry::Number(figures.p99_ms)),
    },
    PairColumn {
        title: "server CPU",
        unit: "µs per tx",
        right: true,
        when: server_was_seen,
        show: |cell| both(cell, |figures| Entry::Number(figures.server_cpu_us)),
    },
    PairColumn { title: "verdict", unit: "", right: false, when: always, show: |cell| both(cell, verdict) },
];

/// The table of the columns that have something to show.
pub fn table(cells: &[PairedCell]) -> Table {
    let columns: Vec<&PairColumn> = COLUMNS.iter().filter(|column| (column.when)(cells)).collect();
    Table::new(
        columns.iter().map(|column| Heading::new(column.title, column.unit, column.right)).collect(),
        cells.iter().map(|cell| columns.iter().map(|column| (column.show)(cell)).collect()),
    )
}

fn always(_: &[PairedCell]) -> bool {
    true
}

fn server_was_seen(cells: &[PairedCell]) -> bool {
    cells.iter().any(|cell| cell.a.server_cpu_us.or(cell.b.server_cpu_us).is_some())
}

fn both(cell: &PairedCell, show: fn(&Figures) -> Entry) -> Entry {
    Entry::Stack(vec![show(&cell.a), show(&cell.b)])
}

/// The ratio is beside B, its interval below.
fn ratio(cell: &PairedCell) -> Entry {
    let ratio = cell.ratio.map_or(Entry::Number(None), |ratio| {
        Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant)
    });
    Entry::Stack(vec!["".into(), ratio])
}

fn verdict(figures: &Figures) -> Entry {
    let models = if figures.models.is_empty() { "unproved".to_owned() } else { figures.models.join(" or ") };
    Entry::Text(if figures.promise_kept == Some(false) {
        Line::grave(models + ", BROKEN")
    } else {
        Line::plain(models)
    })
}

/// The level, and below it the other factors.
fn name(cell: &PairedCell) -> Entry {
    Entry::Stack(vec![cell.factors.level.as_str().into(), cell.others.as_str().into()])
}
