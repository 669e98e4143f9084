//! The columns of a pair's table, for all renderings that people read: A above B, in one row or in
//! two.
//!
//! Not here: widths, lines, Markdown.

use super::{Figures, LevelRatio, PairRatio, PairedCell};
use crate::figure::{Figure, Shown};
use crate::view::{Entry, Heading, Line, Table};

/// The meaning of the ratios.
pub const LEGEND: [&str; 4] = [
    "B ÷ A: committed transactions per second of B as a multiple of A's, with its interval, which \
     holds with 95 % for all ratios here together (Welch's t of the logarithms of independent rounds, \
     Bonferroni), and what that is less (−) or more (+), where the interval excludes 1; ≈: the same within \
     5 %; ?: no measurable difference, or fewer than two complete rounds on a side.",
    "Between levels: a level's rate as a multiple of the first level's in the same rounds, and how \
     that changed from A to B. What slows all levels down alike isn't part of it.",
    "BROKEN: a history contradicts what the level promises, or an invariant doesn't hold that it promises.",
    "The rounds of A and B weren't interleaved: whatever else changed between the two measurements \
     is part of every ratio of B to A, and no interval knows it.",
];

/// One column: of a figure, or its own.
enum PairColumn {
    /// A figure of both.
    Figure(&'static str),
    /// The two lines of its heading, whether it is of numbers, and the entries of A and of B.
    Own([&'static str; 2], bool, fn(&PairedCell) -> [Entry; 2]),
}

use PairColumn::{Figure as Of, Own};

/// The columns.
static COLUMNS: [PairColumn; 12] = [
    Own(["cell", ""], false, name),
    Own(["", ""], false, |_| ["A".into(), "B".into()]),
    Of("tps"),
    Own(["B ÷ A", ""], true, ratio),
    Of("conflict_ratio"),
    Of("wasted_share"),
    Of("latency_p50_ms"),
    Of("latency_p95_ms"),
    Of("latency_p99_ms"),
    Of(SERVER_CPU),
    Of(ANOMALIES),
    Own(["verdict", ""], false, |cell| [verdict(&cell.a), verdict(&cell.b)]),
];

/// Figures that have a column only where one of the two has a value.
const SERVER_CPU: &str = "server_cpu_us";
const ANOMALIES: &str = "anomalies_per_million";

impl PairColumn {
    fn heading(&self) -> Heading {
        match self {
            Of(name) => figure_heading(name),
            Own([title, unit], right, _) => Heading::new(*title, *unit, *right),
        }
    }

    fn show(&self, cell: &PairedCell) -> [Entry; 2] {
        match self {
            Of(name) => [figure_entry(name, &cell.a), figure_entry(name, &cell.b)],
            Own(_, _, show) => show(cell),
        }
    }

    /// True if a pair's cells have something for the column.
    fn is_filled(&self, cells: &[PairedCell]) -> bool {
        match self {
            Of(name @ (SERVER_CPU | ANOMALIES)) => {
                let sides = cells.iter().flat_map(|cell| [&cell.a, &cell.b]);
                sides.into_iter().any(|figures| figures.number(name).is_some())
            }
            _ => true,
        }
    }
}

/// The heading of a figure.
pub fn figure_heading(name: &str) -> Heading {
    let (title, unit) = Figure::known(name).heading;
    Heading::new(title, unit, true)
}

/// A figure of a side, without its interval.
pub fn figure_entry(name: &str, figures: &Figures) -> Entry {
    let number = figures.number(name);
    if Figure::known(name).shown == Shown::Share { Entry::Share(number) } else { Entry::Number(number) }
}

/// The table of the columns that have something to show: a row for each cell, A above B in it.
pub fn table(cells: &[PairedCell]) -> Table {
    let stacked = |cell: &PairedCell, columns: &[&PairColumn]| {
        let entry = |(index, column): (usize, &&PairColumn)| {
            let [a, b] = column.show(cell);
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
            let [a, b] = column.show(cell);
            a_row.push(a);
            b_row.push(b);
        }
        vec![a_row, b_row]
    };
    with_rows(cells, apart)
}

fn with_rows(cells: &[PairedCell], rows: impl Fn(&PairedCell, &[&PairColumn]) -> Vec<Vec<Entry>>) -> Table {
    let columns: Vec<&PairColumn> = COLUMNS.iter().filter(|column| column.is_filled(cells)).collect();
    Table::new(
        columns.iter().map(|column| column.heading()).collect(),
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

/// The ratio is beside B, its interval below.
fn ratio(cell: &PairedCell) -> [Entry; 2] {
    ["".into(), ratio_entry(cell.ratio)]
}

/// A ratio with its interval.
fn ratio_entry(ratio: Option<PairRatio>) -> Entry {
    ratio.map_or(Entry::Number(None), |ratio| {
        Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant)
    })
}

/// The strongest models, and whether a promise is broken.
fn verdict(figures: &Figures) -> Entry {
    let models = if figures.models.is_empty() { "unproved".to_owned() } else { figures.models.join(" or ") };
    Entry::Text(if figures.promise_kept == Some(false) {
        Line::grave(models + ", BROKEN")
    } else {
        Line::plain(models)
    })
}

/// The level, and below it the other factors.
fn name(cell: &PairedCell) -> [Entry; 2] {
    [cell, cell].map(|cell| Entry::Stack(vec![cell.factors.level().into(), cell.others.as_str().into()]))
}
