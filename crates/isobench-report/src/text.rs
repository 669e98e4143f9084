//! The report that people read in a terminal: what was measured, the table, what it means, what the
//! columns count.
//!
//! Readable without colour. Not here: the computation of what is shown.

pub mod experiment;
pub mod header;
mod judgement;
pub mod layout;
mod precision;
pub mod sentences;

pub use judgement::unproved;
pub use precision::paragraphs as precision;

use crate::answer::answer;
use crate::document::Document;
use crate::factors::{Factor, varying};
use crate::overhead;
use crate::summarise::{groups, summarise};
use crate::view::columns::{Column, LEVEL, figures};
use crate::view::matrix::LEGEND;
use crate::view::{Entry, Row, Table, matrix};
use layout::wrap;

/// Narrower than this no table is readable; the lines then run over.
const LEAST_WIDTH: usize = 60;

/// Renders the table of a comparison and the sentences below it, for a terminal of `width` columns.
///
/// Summaries are computed from the rounds, whatever the document says. One row per cell, grouped so
/// that the levels of a combination stand together. With intervals in a second line a comparison of
/// levels fits into 100 columns; factors that vary get a column each, or a line above their rows
/// where that would be too wide; before that, columns that follow from others are left out.
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
        let answer = answer(&document);
        lines.extend(wrap(&answer.text(), width, 2));
        lines.extend(answer.basis.iter().flat_map(|basis| wrap(basis, width, 2)));
        lines.push(String::new());
        lines.extend(strategies(&document, width));
        lines.extend(layout::lines(&shown.table, width));
        lines.push(String::new());
        lines.extend(overhead(&document, width));
        lines.extend(experiment::lines(&document, width));
        lines.extend(sentences::lines(&document, width));
        lines.extend(warnings(&document, width));
        lines.push(String::new());
        lines.extend(legend(&shown, width));
    }
    let mut text = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

/// The matrix of strategies and levels.
fn strategies(document: &Document, width: usize) -> Vec<String> {
    let Some(matrix) = matrix(document) else { return Vec::new() };
    let mut lines = layout::lines(&matrix.table(), width);
    lines.extend(wrap(LEGEND, width, 2));
    lines.push(String::new());
    lines
}

fn overhead(document: &Document, width: usize) -> Vec<String> {
    let Some(table) = overhead::table(document) else { return Vec::new() };
    let mut lines = layout::lines(&table, width);
    lines.extend(overhead::LEGEND.iter().flat_map(|sentence| wrap(sentence, width, 2)));
    lines.push(String::new());
    lines
}

fn warnings(document: &Document, width: usize) -> Vec<String> {
    document.warnings.iter().flat_map(|warning| wrap(&format!("Warning: {warning}"), width, 2)).collect()
}

/// The columns that were chosen, and the table they make.
pub struct Shown {
    /// The factors that have a column, which stand first.
    factors: Vec<Factor>,
    /// The other columns.
    columns: Vec<&'static Column>,
    /// The table.
    pub table: Table,
}

impl Shown {
    /// Gives every factor that varies a column, unless the table then gets too wide.
    pub fn choose(document: &Document, width: usize) -> Shown {
        let vary = varying(document);
        let choices: [(&[_], &[_], u8); 6] = [
            (&vary, &[], 0),
            (&vary, &[], 1),
            (&[], &vary, 0),
            (&[], &vary, 1),
            (&vary, &[], 2),
            (&[], &vary, 2),
        ];
        let mut shown = choices
            .into_iter()
            .map(|(factors, headings, spared)| Shown::new(document, factors, headings, spared))
            .collect::<Vec<_>>();
        let fits = |shown: &Shown| layout::least_width(&shown.table) <= width;
        let chosen = shown.iter().position(fits).unwrap_or(shown.len() - 1);
        shown.swap_remove(chosen)
    }

    /// The table with these factors as columns and these as headings, without columns that are
    /// spared up to a degree.
    fn new(document: &Document, factors: &[Factor], headings: &[Factor], spared: u8) -> Shown {
        let mut columns = vec![&LEVEL];
        columns.extend(figures(document).filter(|column| column.spare == 0 || column.spare > spared));
        let mut rows = Vec::new();
        for group in groups(document) {
            if !headings.is_empty() {
                let names: Vec<String> = headings.iter().map(|factor| factor.named(group[0])).collect();
                rows.push(Row::Heading(names.join(", ")));
            }
            rows.extend(group.iter().map(|cell| {
                let factors = factors.iter().map(|factor| Entry::from(factor.value(cell)));
                Row::Entries(
                    factors.chain(columns.iter().map(|column| (column.show)(document, cell))).collect(),
                )
            }));
        }
        let names = factors.iter().map(Factor::heading);
        let headings = names.chain(columns.iter().map(|column| column.heading())).collect();
        let table = Table { columns: headings, rows };
        Shown { factors: factors.to_vec(), columns, table }
    }
}

fn legend(shown: &Shown, width: usize) -> Vec<String> {
    let factors = shown.factors.iter().map(|factor| (factor.title(), factor.meaning()));
    let columns = shown.columns.iter().map(|column| column.legend);
    let entries: Vec<(&str, &str)> = factors.chain(columns).filter(|(name, _)| !name.is_empty()).collect();
    let longest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    entries
        .iter()
        .flat_map(|(name, meaning)| wrap(&format!("{name:longest$}  {meaning}"), width, longest + 2))
        .collect()
}
