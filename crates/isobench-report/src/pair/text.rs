//! A pair for a terminal: the two results, the table, what differs.

use isobench_result::Pair;
use isobench_result::pair::table::{LEGEND, levels, table};

use crate::text::layout::{self, wrap};

/// Renders the pair for a terminal of `width` columns.
pub fn render(pair: &Pair, width: usize) -> String {
    let mut lines = Vec::new();
    let paragraph = |lines: &mut Vec<String>, text: &str| lines.extend(wrap(text, width, 2));
    paragraph(&mut lines, &pair.a.describe("A"));
    paragraph(&mut lines, &pair.b.describe("B"));
    lines.push(String::new());
    if pair.cells.is_empty() {
        paragraph(&mut lines, "No cell of A has its like in B, so there is nothing to compare.");
    } else {
        lines.extend(layout::lines(&table(&pair.cells), width));
    }
    if !pair.levels.is_empty() {
        lines.push(String::new());
        lines.extend(layout::lines(&levels(&pair.levels), width));
    }
    lines.push(String::new());
    for (letter, names) in [('A', &pair.only_in_a), ('B', &pair.only_in_b)] {
        if !names.is_empty() {
            paragraph(&mut lines, &format!("Only in {letter}: {}.", names.join("; ")));
        }
    }
    if pair.differences.is_empty() {
        paragraph(&mut lines, "Server, settings, client and plan are the same.");
    } else {
        lines.push("What differs besides the numbers:".to_owned());
    }
    for difference in &pair.differences {
        let [a, b] =
            [&difference.a, &difference.b].map(|value| if value.is_empty() { "(not set)" } else { value });
        lines.extend(wrap(&format!("  {}: {a} → {b}", difference.what), width, 4));
    }
    for warning in &pair.warnings {
        paragraph(&mut lines, &format!("Warning: {warning}"));
    }
    lines.push(String::new());
    for text in LEGEND {
        paragraph(&mut lines, text);
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n"
}
