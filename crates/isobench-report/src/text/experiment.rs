//! A published experiment below our table: its figures above ours, what came out again, what the original missed.
//!
//! Not here: how it is judged (`crate::shape`).

use super::layout::{Row, Table, title, wrap};
use crate::document::{Document, Experiment};
use crate::factors::varying;
use crate::numbers::MISSING;
use crate::shape::{Compared, ComparedRow, JudgedShape, compare, is_same_product, selected};

/// An experiment in words, for any rendering.
pub struct Told {
    /// What it asks.
    pub title: String,
    /// Who published it, on what, and what that means for the figures.
    pub source: Vec<String>,
    /// The published table, ours below each figure; `None` if none was published.
    pub table: Option<Table>,
    /// How many shapes came out again.
    pub verdict: Option<String>,
    /// Each shape: the verdict, what it says, the figures.
    pub shapes: Vec<[String; 3]>,
    /// What the original missed.
    pub missed: Vec<String>,
}

/// Tells of the experiment that a document repeats; `None` if it repeats none.
pub fn told(document: &Document) -> Option<Told> {
    let experiment = document.experiment.as_ref()?;
    let compared = compare(document)?;
    let shape = |judged: &JudgedShape| {
        [
            judged.verdict().to_owned(),
            capital(judged.shape.says.trim_end_matches('.')),
            capital(&judged.figures()),
        ]
    };
    let name = if experiment.name.is_empty() { "Published".to_owned() } else { experiment.name.clone() };
    Some(Told {
        title: format!("{name}: {}", experiment.title),
        source: source(document, experiment),
        table: table(document, &compared),
        verdict: compared.verdict(),
        shapes: compared.shapes.iter().map(shape).collect(),
        missed: experiment.missed.clone(),
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn source(document: &Document, experiment: &Experiment) -> Vec<String> {
    let mut lines = Vec::new();
    if !experiment.source.is_empty() {
        lines.push(format!("Source: {}.", experiment.source.trim_end_matches('.')));
    }
    let published = if experiment.product.is_empty() { "an unknown server" } else { &experiment.product };
    let server = &document.server;
    let ours = format!("{} {}", server.product, server.version);
    let ours = if ours.trim().is_empty() { "an unknown server" } else { ours.trim() };
    lines.push(if is_same_product(document, experiment) {
        format!(
            "Published for {published}, on another machine than {ours} here: what should come out again is the shape, not the \
             figures."
        )
    } else {
        format!(
            "Published for {published}, which {ours} here is NOT: another product on another machine, whose shapes may differ, \
             too."
        )
    });
    if experiment.size == "quick" {
        lines.push("This was the quick size; --full takes the published one.".to_owned());
    }
    lines
}

/// The published table: in each row what was published above what was measured.
fn table(document: &Document, compared: &Compared) -> Option<Table> {
    let mut names: Vec<&str> = Vec::new();
    for (figure, _) in compared.rows.iter().flat_map(|row| &row.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut titles = vec![title("cell", "", false), title("", "", false)];
    titles.extend(names.iter().map(|name| {
        // A long name has two lines.
        let (first, second) = name.rsplit_once(' ').unwrap_or((name, ""));
        title(first, second, true)
    }));
    let row = |row: &ComparedRow| {
        let mut cells = vec![cell_name(document, row), vec!["published".to_owned(), "ours".to_owned()]];
        cells.extend(names.iter().map(
            |name| match row.figures.iter().find(|(figure, _)| figure.name == *name) {
                None => Vec::new(),
                Some((figure, Some(ours))) => vec![figure.value.clone(), ours.clone()],
                Some((figure, None)) if figure.metric.is_some() => {
                    vec![figure.value.clone(), MISSING.to_owned()]
                }
                Some((figure, None)) => vec![figure.value.clone()],
            },
        ));
        Row::Cells(cells)
    };
    Some(Table { titles, rows: compared.rows.iter().map(row).collect() })
}

/// The level, and below it what else the cell is named by.
fn cell_name(document: &Document, row: &ComparedRow) -> Vec<String> {
    let Some(cell) = row.cell else {
        let words = selected(row.selector);
        let (first, rest) = words.split_once(", ").unwrap_or((&words, ""));
        let missing =
            if rest.is_empty() { "not measured".to_owned() } else { format!("{rest}: not measured") };
        return vec![first.to_owned(), missing];
    };
    let factors: Vec<String> = varying(document).iter().map(|factor| factor.said(cell)).collect();
    vec![cell.level.name(), factors.join(", ")]
}

/// The experiment's lines in a terminal; none if the document repeats none.
pub fn lines(document: &Document, width: usize) -> Vec<String> {
    let Some(told) = told(document) else { return Vec::new() };
    let mut lines = wrap(&told.title, width, 2);
    lines.extend(told.source.iter().flat_map(|line| wrap(line, width, 2)));
    if let Some(table) = &told.table {
        lines.push(String::new());
        lines.extend(table.lines(width));
    }
    lines.push(String::new());
    lines.extend(told.verdict.iter().flat_map(|verdict| wrap(verdict, width, 2)));
    let longest = told.shapes.iter().map(|shape| shape[0].chars().count()).max().unwrap_or(0);
    for [verdict, says, figures] in &told.shapes {
        lines.extend(wrap(&format!("  {verdict:longest$}  {says}. {figures}"), width, longest + 4));
    }
    if !told.missed.is_empty() {
        lines.push("What the original missed:".to_owned());
        lines.extend(told.missed.iter().flat_map(|sentence| wrap(&format!("- {sentence}"), width, 2)));
    }
    lines.push(String::new());
    lines
}
