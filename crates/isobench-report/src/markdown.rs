//! The report as GitHub-flavoured Markdown, short enough for a comment on a pull request.
//!
//! The table's columns are the terminal's. Not here: what they show (`view/columns`), the answer in
//! words (`answer`).

mod table;

use crate::text::experiment::{ShapeText, describe};
use crate::text::{Shown, header, sentences};
use isobench_result::answer::answer;
use isobench_result::conclusions::summarised;
use isobench_result::document::Document;
use isobench_result::durability;
use isobench_result::machines;
use isobench_result::numbers::counted;
use isobench_result::overhead;
use isobench_result::view::tried::{self, notes, witnesses};
pub use table::{escape, table};

/// Wide enough that nothing is left out or broken.
const UNLIMITED: usize = 10_000;

/// Renders the answer, the table, the reasons, what must be known before trusting it, and below a
/// fold how it was measured.
///
/// Summaries are computed from the rounds, whatever the document says.
pub fn to_markdown(document: &Document) -> String {
    let document = &summarised(document);
    let answer = answer(document);
    let mut blocks = Vec::new();
    blocks.push(format!("**{}**", escape(&answer.text())));
    blocks.extend(answer.basis.as_deref().map(escape));
    if !document.cells.is_empty() {
        blocks.push(table(&Shown::choose(document, UNLIMITED).table));
    }
    blocks.extend(durability::table(document).map(|faults| table(&faults)));
    blocks.extend(machines::table(document, usize::MAX).map(|machines| table(&machines)));
    blocks.extend(overhead::table(document).map(|overhead| table(&overhead)));
    blocks.extend(list(answer.reasons.iter().map(|reason| reason.text.as_str())));
    blocks.extend(interleavings(document));
    blocks.extend(experiment(document));
    let warnings = document.warnings.iter().map(|warning| format!("⚠ {warning}"));
    let unsure: Vec<String> = flags(document).into_iter().chain(warnings).collect();
    blocks.extend(list(unsure.iter().map(String::as_str)));
    blocks.push(folded("How it was measured", &header::full(document)));
    if !document.cells.is_empty() {
        blocks.push(folded("What each level did", &sentences::lines(document, UNLIMITED)));
    }
    blocks.join("\n\n") + "\n"
}

/// The shortest interleaving with a wrong outcome below a fold, and what wasn't tried.
fn interleavings(document: &Document) -> Vec<String> {
    let steps = witnesses(&tried::tried(document)).into_iter().take(1).map(|witness| {
        // A line of the witness may hold anything, but no line of its own.
        let fence = "~~~~~~~~~~~~";
        let (heading, lines) = (escape(&witness.heading), witness.lines.join("\n"));
        format!("<details><summary>{heading}</summary>\n\n{fence}text\n{lines}\n{fence}\n\n</details>")
    });
    steps.chain(notes(&tried::tried(document)).iter().map(|note| escape(note))).collect()
}

/// The flags of all cells.
fn flags(document: &Document) -> Vec<String> {
    let cells = document.cells.iter();
    cells
        .flat_map(|cell| {
            let name = format!("{}, {}", cell.level.name(), counted(cell.clients.into(), "client"));
            let flags = cell.summary.flags.iter();
            flags.map(move |flag| format!("⚠ {name}: {}: {}", flag.kind.name(), flag.text))
        })
        .collect()
}

/// The published experiment that was repeated.
fn experiment(document: &Document) -> Option<String> {
    let text = describe(document)?;
    let mut blocks = vec![format!("**{}**", escape(&text.title)), escape(&text.source.join(" "))];
    blocks.extend(text.table.as_ref().map(table));
    blocks.extend(text.verdict.as_ref().map(|verdict| escape(verdict)));
    let shapes: Vec<String> = text
        .shapes
        .iter()
        .map(|ShapeText { verdict, says, figures }| {
            format!("- **{}**: {}. {}", escape(&verdict.text), escape(says), escape(figures))
        })
        .collect();
    blocks.push(shapes.join("\n"));
    if !text.missed.is_empty() {
        blocks.push("What the original missed:".to_owned());
        blocks.extend(list(text.missed.iter().map(String::as_str)));
    }
    blocks.retain(|block| !block.is_empty());
    Some(blocks.join("\n\n"))
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> Option<String> {
    let lines: Vec<String> = items.map(|item| format!("- {}", escape(item))).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn folded(title: &str, lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("- {}", escape(line.trim()))).collect();
    format!("<details><summary>{title}</summary>\n\n{}\n\n</details>", lines.join("\n"))
}
