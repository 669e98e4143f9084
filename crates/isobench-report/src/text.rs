//! The report that people read in a terminal: what was measured, the table, what it means, what the columns count.
//!
//! Readable without colour. Not here: the computation of what is shown.

pub mod columns;
pub mod header;
mod judgement;
pub mod layout;
mod precision;
pub mod sentences;

pub use judgement::unproved;
pub use precision::paragraphs as precision;

use crate::answer::answer;
use crate::document::Document;
use crate::summarise::{groups, summarise};
use columns::{ANOMALIES_TITLE, Column, FACTORS, FIGURES, LEVEL, RATIO_TITLE, SPARE_TITLES};
use layout::{Row, Table, wrap};

/// Narrower than this no table is readable; the lines then run over.
const LEAST_WIDTH: usize = 60;

/// Renders the table of a comparison and the sentences below it, for a terminal of `width` columns.
///
/// Summaries are computed from the rounds, whatever the document says. One row per cell, grouped so that the
/// levels of a combination stand together. With intervals in a second line a comparison of levels fits into 100
/// columns; factors that vary get a column each, or a line above their rows where that would be too wide;
/// before that, columns that follow from others are left out.
pub fn render(document: &Document, width: usize) -> String {
    let width = width.max(LEAST_WIDTH);
    let mut document = document.clone();
    summarise(&mut document);
    let mut lines = header::lines(&document, width);
    if document.cells.is_empty() {
        lines.push("Nothing was measured.".to_owned());
        lines.extend(warnings(&document, width));
    } else {
        let shown = Shown::choose(&document, width);
        lines.push(String::new());
        lines.extend(wrap(&answer(&document).headline, width, 2));
        lines.push(String::new());
        lines.extend(shown.table.lines(width));
        lines.push(String::new());
        lines.extend(sentences::lines(&document, width));
        lines.extend(warnings(&document, width));
        lines.push(String::new());
        lines.extend(legend(&shown.columns, width));
    }
    let mut text = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

fn warnings(document: &Document, width: usize) -> Vec<String> {
    document.warnings.iter().flat_map(|warning| wrap(&format!("Warning: {warning}"), width, 2)).collect()
}

/// The columns that were chosen, and the table they make.
pub struct Shown {
    /// The columns.
    pub columns: Vec<&'static Column>,
    /// The table.
    pub table: Table,
}

impl Shown {
    /// Gives every factor that varies a column, unless the table then gets too wide.
    pub fn choose(document: &Document, width: usize) -> Shown {
        let vary: Vec<&'static Column> = FACTORS.iter().filter(|factor| varies(document, factor)).collect();
        let choices: [(&[_], &[_], bool); 4] =
            [(&vary, &[], true), (&vary, &[], false), (&[], &vary, true), (&[], &vary, false)];
        let mut shown = choices
            .into_iter()
            .map(|(factors, headings, all)| Shown::new(document, factors, headings, all))
            .collect::<Vec<_>>();
        let fits = |shown: &Shown| shown.table.least_width() <= width;
        let chosen = shown.iter().position(fits).unwrap_or(shown.len() - 1);
        shown.swap_remove(chosen)
    }

    fn new(
        document: &Document,
        factors: &[&'static Column],
        headings: &[&'static Column],
        all: bool,
    ) -> Shown {
        let mut columns = factors.to_vec();
        columns.push(&LEVEL);
        let groups = groups(document);
        let compares = groups.iter().any(|group| group.len() > 1);
        let judged = document.cells.iter().any(|cell| cell.summary.verdict.is_some());
        columns.extend(FIGURES.iter().filter(|column| match column.title {
            RATIO_TITLE => compares,
            ANOMALIES_TITLE => judged,
            title => all || !SPARE_TITLES.contains(&title),
        }));
        let mut rows = Vec::new();
        for group in groups {
            if !headings.is_empty() {
                let factor = |column: &&Column| {
                    format!("{} {}", column.title, (column.show)(document, group[0]).join(""))
                };
                rows.push(Row::Heading(headings.iter().map(factor).collect::<Vec<_>>().join(", ")));
            }
            rows.extend(group.iter().map(|cell| {
                Row::Cells(columns.iter().map(|column| (column.show)(document, cell)).collect())
            }));
        }
        let titles = columns.iter().map(|column| (column.title, column.unit, column.right)).collect();
        Shown { columns, table: Table { titles, rows } }
    }
}

/// True if the cells of a document differ in a factor.
pub fn varies(document: &Document, factor: &Column) -> bool {
    let mut values = document.cells.iter().map(|cell| (factor.show)(document, cell));
    let first = values.next();
    values.any(|value| Some(value) != first)
}

fn legend(columns: &[&Column], width: usize) -> Vec<String> {
    let name = |column: &Column| column.legend.0;
    let longest = columns.iter().map(|column| name(column).chars().count()).max().unwrap_or(0);
    columns
        .iter()
        .filter(|column| !name(column).is_empty())
        .flat_map(|column| {
            let line = format!("{:longest$}  {}", name(column), column.legend.1);
            wrap(&line, width, longest + 2)
        })
        .collect()
}
