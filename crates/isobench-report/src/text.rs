//! The report that people read in a terminal: what was measured, the answer, the table, and the
//! reasons.
//!
//! Readable without colour. Not here: the computation of what is shown, and how emphasis looks.

mod brief;
pub mod experiment;
pub mod header;
mod histories;
mod judgement;
pub mod layout;
mod precision;
mod seen;
pub mod sentences;
mod short;
mod statements;
mod witness;

use std::fmt;

pub use precision::paragraphs as precision;
pub use short::folder_of;
pub use statements::statements;
pub use witness::{phrase, witness};

use isobench_result::answer::{Answer, answer};
use isobench_result::conclusions::summarised;
use isobench_result::document::Document;
use isobench_result::durability;
use isobench_result::factor::{Factor, varying};
use isobench_result::machines;
use isobench_result::numbers::counted;
use isobench_result::overhead;
use isobench_result::rounds::groups;
use isobench_result::view::columns::{Column, LEVEL, VERDICT, figures};
use isobench_result::view::tried::{self, notes, witnesses};
use isobench_result::view::{Emphasis, Entry, Line, Row, Table, matrix};
use layout::{Spans, wrap_line};

/// Narrower than this no table is readable; the lines then run over.
const LEAST_WIDTH: usize = 40;

/// How much a report has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// What fits on a screen.
    #[default]
    Screen,
    /// The same with the anomalies of each row, and a witness from a history (`isobench audit`).
    Audit,
    /// All details.
    Details,
    /// All details, and the meaning of the columns.
    Legend,
}

impl Extent {
    /// True if the report has all details.
    pub const fn is_full(self) -> bool {
        matches!(self, Extent::Details | Extent::Legend)
    }
}

/// The terminal that a report is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Its width in columns.
    pub width: usize,
    /// How much the report has.
    pub extent: Extent,
    /// True if the terminal shows ✗ and ✓.
    pub unicode: bool,
}

/// Lines of text whose parts have an emphasis. Without it, they are the same text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    lines: Vec<Spans>,
}

impl Text {
    /// The lines, each as its parts from left to right.
    pub fn lines(&self) -> &[Vec<Line>] {
        &self.lines
    }

    /// Blocks with an empty line between them.
    fn of(blocks: impl IntoIterator<Item = Vec<Spans>>) -> Text {
        let mut lines = Vec::new();
        for mut block in blocks {
            block.iter_mut().for_each(trim_end);
            block.truncate(block.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
            if !block.is_empty() && !lines.is_empty() {
                lines.push(Spans::new());
            }
            lines.extend(block);
        }
        Text { lines }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{}", layout::plain(line)))
    }
}

/// Renders the report of a comparison on one screen for a terminal of `width` columns, without
/// emphasis.
pub fn render(document: &Document, width: usize) -> String {
    Terminal::of_width(width).render(document).to_string()
}

impl Terminal {
    /// A terminal for a report on one screen.
    pub fn of_width(width: usize) -> Terminal {
        Terminal { width, extent: Extent::Screen, unicode: true }
    }

    /// Renders the report of a comparison.
    ///
    /// Summaries are computed from the rounds, whatever the document says. One row per cell,
    /// grouped so that the levels of a combination stand together. Factors that vary get a column
    /// each, or a line above their rows where that would be too wide. The columns that matter least
    /// are left out where there isn't room for all; where there isn't for the important ones
    /// either, each row is a block of lines.
    pub fn render(self, document: &Document) -> Text {
        let width = self.width.max(LEAST_WIDTH);
        let document = &summarised(document);
        if !self.extent.is_full() {
            return Text::of(brief::blocks(document, width, self));
        }
        let answer = answer(document);
        let mut blocks = vec![header::lines(document, width), headline(&answer, width)];
        if !document.cells.is_empty() {
            blocks.extend(self.tables(document, width));
        }
        blocks.push(reasons(&answer, width));
        if !document.cells.is_empty() {
            blocks.push(unemphasised(experiment::lines(document, width)));
            blocks.push(unemphasised(sentences::remarks(document, width)));
        }
        blocks.push(interleavings(document, width));
        blocks.push(warnings(document, width));
        Text::of(blocks)
    }

    /// The tables: strategies by levels, all results, what the levels cost by parameters.
    fn tables(self, document: &Document, width: usize) -> Vec<Vec<Spans>> {
        let explained = |table: &Table, sentences: &[&str]| {
            let mut lines = layout::table(table, width);
            if self.extent == Extent::Legend {
                lines.extend(sentences.iter().flat_map(|sentence| faint(sentence, width)));
            }
            lines
        };
        let mut blocks = Vec::new();
        blocks.extend(matrix(document).map(|it| explained(&it.table(), &[matrix::LEGEND])));
        let shown = Shown::choose(document, width);
        let mut lines = layout::table(&shown.table, width);
        if let Some(note) = shown.note(self.extent == Extent::Legend) {
            lines.extend(faint(&note, width));
        }
        blocks.push(lines);
        if self.extent == Extent::Legend {
            blocks.push(legend(&shown, width));
        }
        blocks.extend(durability::table(document).map(|table| explained(&table, &durability::LEGEND)));
        let machines = machines::table(document, machines::MOST_SHOWN);
        blocks.extend(machines.map(|table| explained(&table, &machines::LEGEND)));
        blocks.extend(overhead::table(document).map(|table| explained(&table, &overhead::LEGEND)));
        blocks
    }
}

/// Removes blanks at the end of a line.
fn trim_end(line: &mut Spans) {
    while let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        line.pop();
    }
}

/// The answer, a line for each of its sentences, and what it is based on.
fn headline(answer: &Answer, width: usize) -> Vec<Spans> {
    let sentence = |text: &String| Line { text: text.clone(), emphasis: Emphasis::Headline };
    let basis = answer.basis.iter().map(Line::plain);
    answer.headline.iter().map(sentence).chain(basis).flat_map(|line| wrap_line(&line, width, 2)).collect()
}

/// The reasons for the answer, a bullet each.
fn reasons(answer: &Answer, width: usize) -> Vec<Spans> {
    let bullet = |reason: &Line| Line { text: format!("- {}", reason.text), ..reason.clone() };
    answer.reasons.iter().flat_map(|reason| wrap_line(&bullet(reason), width, 2)).collect()
}

/// The shortest interleaving with a wrong outcome, and what wasn't tried.
fn interleavings(document: &Document, width: usize) -> Vec<Spans> {
    let mut lines = Vec::new();
    if let Some(witness) = witnesses(&tried::tried(document)).first() {
        lines.extend(wrap_line(&Line::plain(&witness.heading), width, 2));
        let step = |line: &String| wrap_line(&Line::plain(format!("  {line}")), width, 8);
        lines.extend(witness.lines.iter().flat_map(step));
    }
    lines.extend(
        notes(&tried::tried(document)).iter().flat_map(|note| wrap_line(&Line::plain(note), width, 2)),
    );
    lines
}

fn warnings(document: &Document, width: usize) -> Vec<Spans> {
    let warning = |text: &String| wrap_line(&Line::caution(format!("Warning: {text}")), width, 2);
    document.warnings.iter().flat_map(warning).collect()
}

fn unemphasised(lines: Vec<String>) -> Vec<Spans> {
    lines.into_iter().map(|line| vec![Line::plain(line)]).collect()
}

fn faint(text: &str, width: usize) -> Vec<Spans> {
    wrap_line(&Line::faint(text), width, 2)
}

/// The columns that were chosen, and the table they make.
pub struct Shown {
    /// The factors that have a column, which stand first.
    factors: Vec<Factor>,
    /// The other columns.
    columns: Vec<Column>,
    /// The columns that there was no room for.
    left_out: Vec<Column>,
    /// The table.
    pub table: Table,
}

impl Shown {
    /// Takes as many columns as fit, of which the first matter most. Every factor that varies is a
    /// column, too, unless one of those up to the verdict would then have no room; it then heads
    /// its rows.
    pub fn choose(document: &Document, width: usize) -> Shown {
        let columns: Vec<Column> = std::iter::once(LEVEL).chain(figures(document)).collect();
        let least = columns.iter().position(|column| column.name == VERDICT.name).map_or(1, |at| at + 1);
        let vary = varying(document);
        let none: &[Factor] = &[];
        for (factors, headings) in [(vary.as_slice(), none), (none, vary.as_slice())] {
            let mut tables = (least..=columns.len())
                .rev()
                .map(|count| Shown::new(document, factors, headings, columns.split_at(count)));
            if let Some(shown) = tables.find(|shown| layout::fits(&shown.table, width)) {
                return shown;
            }
        }
        // Each row is a block then, in which all have room.
        Shown::new(document, none, &vary, (&columns, &[]))
    }

    /// The table with these factors as columns and these as headings, and with the first of these
    /// columns, but not the second.
    fn new(
        document: &Document,
        factors: &[Factor],
        headings: &[Factor],
        (columns, left_out): (&[Column], &[Column]),
    ) -> Shown {
        let mut rows = Vec::new();
        for group in groups(document) {
            if !headings.is_empty() {
                let said: Vec<String> = headings.iter().map(|factor| factor.said(group[0])).collect();
                rows.push(Row::Heading(said.join(", ")));
            }
            rows.extend(group.iter().map(|cell| {
                let factors = factors.iter().map(|factor| Entry::from(factor.value(cell)));
                Row::Entries(
                    factors.chain(columns.iter().map(|column| column.entry(document, cell))).collect(),
                )
            }));
        }
        let names = factors.iter().map(Factor::heading);
        let headings = names.chain(columns.iter().map(Column::heading)).collect();
        Shown {
            factors: factors.to_vec(),
            columns: columns.to_vec(),
            left_out: left_out.to_vec(),
            table: Table { columns: headings, rows },
        }
    }

    /// What a reader misses in the table: columns, and the legend unless it is shown.
    fn note(&self, legend: bool) -> Option<String> {
        let more = counted(self.left_out.len() as u64, "more column");
        let left_out = (!self.left_out.is_empty()).then(|| format!("{more} on a wider terminal."));
        let hint = (!legend).then(|| "--legend explains the columns.".to_owned());
        let parts: Vec<String> = left_out.into_iter().chain(hint).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

/// The meaning of the columns that are shown.
fn legend(shown: &Shown, width: usize) -> Vec<Spans> {
    let factors = shown.factors.iter().map(|factor| (factor.title(), factor.meaning()));
    let columns = shown.columns.iter().map(|column| column.legend);
    let entries: Vec<(&str, &str)> = factors.chain(columns).filter(|(name, _)| !name.is_empty()).collect();
    let longest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, meaning): &(&str, &str)| Line::faint(format!("{name:longest$}  {meaning}"));
    entries.iter().flat_map(|entry| wrap_line(&line(entry), width, longest + 2)).collect()
}
