//! A published experiment below our table: its figures above ours, what came out again, what the
//! original missed.
//!
//! Not here: how it is judged (`isobench_result::shape`).

use super::layout::{self, wrap};
use isobench_result::document::{Document, Experiment};
use isobench_result::factor::varying;
use isobench_result::shape::{
    ComparedExperiment, ComparedRow, JudgedShape, compare, is_same_product, selected,
};
use isobench_result::view::{Entry, Heading, Line, Table};
use isobench_result::words::{capital, distinct};

/// An experiment in words, for any rendering.
pub struct ExperimentText {
    /// Its name and its question.
    pub title: String,
    /// The source, the product, and what that means for the figures.
    pub source: Vec<String>,
    /// The published table, ours below each figure; `None` if none was published.
    pub table: Option<Table>,
    /// The number of shapes that came out again.
    pub verdict: Option<String>,
    /// The shapes.
    pub shapes: Vec<ShapeText>,
    /// The shortcomings of the original.
    pub missed: Vec<String>,
}

/// A shape in words.
pub struct ShapeText {
    /// The verdict.
    pub verdict: Line,
    /// The statement.
    pub says: String,
    /// The figures.
    pub figures: String,
}

/// The experiment that a document repeats, in words; `None` if it repeats none.
pub fn describe(document: &Document) -> Option<ExperimentText> {
    let experiment = document.plan.experiment.as_ref()?;
    let compared = compare(document)?;
    let shape = |judged: &JudgedShape| ShapeText {
        verdict: judged.verdict(),
        says: capital(judged.shape.says.trim_end_matches('.')),
        figures: capital(&judged.figures()),
    };
    let name = if experiment.name.is_empty() { "Published".to_owned() } else { experiment.name.clone() };
    Some(ExperimentText {
        title: format!("{name}: {}", experiment.title),
        source: source(document, experiment),
        table: table(document, &compared),
        verdict: compared.verdict(),
        shapes: compared.shapes.iter().map(shape).collect(),
        missed: experiment.missed.clone(),
    })
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
            "Published for {published}, on another machine than {ours} here: what should come out \
             again is the shape, not the figures."
        )
    } else {
        format!(
            "Published for {published}, which {ours} here is NOT: another product on another \
             machine, whose shapes may differ, too."
        )
    });
    if experiment.size == "quick" {
        lines.push("This was the quick size; --full takes the published one.".to_owned());
    }
    lines
}

/// The published table: in each row what was published above what was measured.
fn table(document: &Document, compared: &ComparedExperiment) -> Option<Table> {
    let figures = compared.rows.iter().flat_map(|row| &row.figures);
    let names = distinct(figures.map(|(figure, _)| figure.name.as_str()));
    if names.is_empty() {
        return None;
    }
    let mut columns = vec![Heading::new("cell", "", false), Heading::new("", "", false)];
    columns.extend(names.iter().map(|name| {
        // A long name has two lines.
        let (first, second) = name.rsplit_once(' ').unwrap_or((name, ""));
        Heading::new(first, second, true)
    }));
    let row = |row: &ComparedRow| {
        let sides = Entry::Stack(vec!["published".into(), "ours".into()]);
        let mut entries = vec![cell_name(document, row), sides];
        entries.extend(names.iter().map(|name| {
            let found = row.figures.iter().find(|(figure, _)| figure.name == *name);
            let Some((figure, ours)) = found else { return Entry::Stack(Vec::new()) };
            let mut lines = vec![figure.value.as_str().into()];
            match ours {
                Some(ours) => lines.push(ours.as_str().into()),
                None if figure.metric.is_some() => lines.push(Entry::Number(None)),
                None => {}
            }
            Entry::Stack(lines)
        }));
        entries
    };
    Some(Table::new(columns, compared.rows.iter().map(row)))
}

/// The level, and below it what else the cell is named by.
fn cell_name(document: &Document, row: &ComparedRow) -> Entry {
    let Some(cell) = row.cell else {
        let mut words = selected(row.selector);
        let first = words.remove(0);
        let missing = match words.as_slice() {
            [] => "not measured".to_owned(),
            rest => format!("{}: not measured", rest.join(", ")),
        };
        return Entry::Stack(vec![first.into(), missing.into()]);
    };
    let factors: Vec<String> = varying(document).iter().map(|factor| factor.said(cell)).collect();
    Entry::Stack(vec![cell.level.name().into(), factors.join(", ").into()])
}

/// The experiment's lines in a terminal; none if the document repeats none.
pub fn lines(document: &Document, width: usize) -> Vec<String> {
    let Some(text) = describe(document) else { return Vec::new() };
    let mut lines = wrap(&text.title, width, 2);
    lines.extend(text.source.iter().flat_map(|line| wrap(line, width, 2)));
    if let Some(table) = &text.table {
        lines.push(String::new());
        lines.extend(layout::lines(table, width));
    }
    lines.push(String::new());
    lines.extend(text.verdict.iter().flat_map(|verdict| wrap(verdict, width, 2)));
    let longest = text.shapes.iter().map(|shape| shape.verdict.text.chars().count()).max().unwrap_or(0);
    for ShapeText { verdict, says, figures } in &text.shapes {
        let verdict = &verdict.text;
        lines.extend(wrap(&format!("  {verdict:longest$}  {says}. {figures}"), width, longest + 4));
    }
    if !text.missed.is_empty() {
        lines.push("What the original missed:".to_owned());
        lines.extend(text.missed.iter().flat_map(|sentence| wrap(&format!("- {sentence}"), width, 2)));
    }
    lines.push(String::new());
    lines
}
