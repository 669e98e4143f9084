//! The columns of a pair's table, for all renderings that people read: A above B, in one row or in
//! two.
//!
//! Not here: widths, lines, Markdown.

use super::{Figures, LevelRatio, PairRatio, PairedCell};
use crate::view::{Entry, Heading, Line, Table};

/// The meaning of the ratios.
pub const LEGEND: [&str; 4] = [
    "B ÷ A: committed transactions per second of B as a multiple of A's, with its interval, which \
     holds with 95 % for all ratios here together (Welch's t of the logarithms of independent rounds, \
     Bonferroni), and what that is less (−) or more (+), where the interval excludes 1; ≈: the same within \
     5 %; ?: not told apart, or fewer than two complete rounds on a side.",
    "Between levels: a level's rate as a multiple of the first level's in the same rounds, and how \
     that changed from A to B. What slows all levels down alike isn't part of it.",
    "BROKEN: a history contradicts what the level promises, or an invariant doesn't hold that it promises.",
    "The rounds of A and B weren't interleaved: whatever else changed between the two measurements \
     is part of every ratio of B to A, and no interval knows it.",
];

/// One column.
struct PairColumn {
    /// The first line of the heading.
    title: &'static str,
    /// The second line of the heading.
    unit: &'static str,
    /// True for numbers, which are right-aligned.
    right: bool,
    /// The entries of a cell: that of A, and that of B.
    show: fn(&PairedCell) -> [Entry; 2],
    /// True if a pair's cells have something for the column.
    when: fn(&[PairedCell]) -> bool,
}

/// The columns.
static COLUMNS: [PairColumn; 12] = [
    PairColumn { title: "cell", unit: "", right: false, when: always, show: name },
    PairColumn { title: "", unit: "", right: false, when: always, show: |_| ["A".into(), "B".into()] },
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
    PairColumn {
        title: "anomalies",
        unit: "per million",
        right: true,
        when: anomalies_were_counted,
        show: |cell| both(cell, |figures| Entry::Number(figures.anomalies_per_million)),
    },
    PairColumn { title: "verdict", unit: "", right: false, when: always, show: |cell| both(cell, verdict) },
];

/// The table of the columns that have something to show: a row for each cell, A above B in it.
pub fn table(cells: &[PairedCell]) -> Table {
    let stacked = |cell: &PairedCell, columns: &[&PairColumn]| {
        let entry = |(index, column): (usize, &&PairColumn)| {
            let [a, b] = (column.show)(cell);
            // The name is the same for both.
            if index == 0 { a } else { Entry::Stack(vec![a, b]) }
        };
        vec![columns.iter().enumerate().map(entry).collect()]
    };
    with_rows(cells, stacked)
}

/// The same with a row for A and one for B.
pub fn table_of_two_rows(cells: &[PairedCell]) -> Table {
    let apart = |cell: &PairedCell, columns: &[&PairColumn]| {
        let (mut a_row, mut b_row) = (Vec::new(), Vec::new());
        for column in columns {
            let [a, b] = (column.show)(cell);
            a_row.push(a);
            b_row.push(b);
        }
        vec![a_row, b_row]
    };
    with_rows(cells, apart)
}

fn with_rows(cells: &[PairedCell], rows: impl Fn(&PairedCell, &[&PairColumn]) -> Vec<Vec<Entry>>) -> Table {
    let columns: Vec<&PairColumn> = COLUMNS.iter().filter(|column| (column.when)(cells)).collect();
    Table::new(
        columns.iter().map(|column| Heading::new(column.title, column.unit, column.right)).collect(),
        cells.iter().flat_map(|cell| rows(cell, &columns)),
    )
}

/// The table of what each level costs in both.
pub fn levels(levels: &[LevelRatio]) -> Table {
    let columns = [
        Heading::new("between levels", "", false),
        Heading::new("A", "ratio", true),
        Heading::new("B", "ratio", true),
        Heading::new("B ÷ A", "", true),
    ];
    let rows = levels.iter().map(|level| {
        let name = format!("{} ÷ {}", level.level, level.to);
        let others = level.name.strip_prefix(&format!("{name}, ")).unwrap_or_default();
        let name = Entry::Stack(vec![name.as_str().into(), others.into()]);
        vec![name, Entry::Number(level.a), Entry::Number(level.b), ratio_entry(level.ratio)]
    });
    Table::new(columns.into(), rows)
}

fn always(_: &[PairedCell]) -> bool {
    true
}

fn anomalies_were_counted(cells: &[PairedCell]) -> bool {
    cells.iter().any(|cell| cell.a.anomalies.or(cell.b.anomalies).is_some())
}

fn server_was_seen(cells: &[PairedCell]) -> bool {
    cells.iter().any(|cell| cell.a.server_cpu_us.or(cell.b.server_cpu_us).is_some())
}

fn both(cell: &PairedCell, show: fn(&Figures) -> Entry) -> [Entry; 2] {
    [show(&cell.a), show(&cell.b)]
}

/// The ratio is beside B, its interval below.
fn ratio(cell: &PairedCell) -> [Entry; 2] {
    ["".into(), ratio_entry(cell.ratio)]
}

/// A ratio with its interval.
pub fn ratio_entry(ratio: Option<PairRatio>) -> Entry {
    ratio.map_or(Entry::Number(None), |ratio| {
        Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant)
    })
}

/// The strongest models, and whether a promise is broken.
pub fn verdict(figures: &Figures) -> Entry {
    let models = if figures.models.is_empty() { "unproved".to_owned() } else { figures.models.join(" or ") };
    Entry::Text(if figures.promise_kept == Some(false) {
        Line::grave(models + ", BROKEN")
    } else {
        Line::plain(models)
    })
}

/// The level, and below it the other factors.
fn name(cell: &PairedCell) -> [Entry; 2] {
    [cell, cell]
        .map(|cell| Entry::Stack(vec![cell.factors.level.as_str().into(), cell.others.as_str().into()]))
}
