//! A pair for a terminal: the two results, the table, what differs.

use super::Pair;
use super::table::{levels, table};
use crate::text::layout::{self, wrap};

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

impl Pair {
    /// Renders the pair for a terminal of `width` columns.
    pub fn to_text(&self, width: usize) -> String {
        let mut lines = Vec::new();
        let paragraph = |lines: &mut Vec<String>, text: &str| lines.extend(wrap(text, width, 2));
        paragraph(&mut lines, &self.a.describe("A"));
        paragraph(&mut lines, &self.b.describe("B"));
        lines.push(String::new());
        if self.cells.is_empty() {
            paragraph(&mut lines, "No cell of A has its like in B, so there is nothing to compare.");
        } else {
            lines.extend(layout::lines(&table(&self.cells), width));
        }
        if !self.levels.is_empty() {
            lines.push(String::new());
            lines.extend(layout::lines(&levels(&self.levels), width));
        }
        lines.push(String::new());
        for (letter, names) in [('A', &self.only_in_a), ('B', &self.only_in_b)] {
            if !names.is_empty() {
                paragraph(&mut lines, &format!("Only in {letter}: {}.", names.join("; ")));
            }
        }
        if self.differences.is_empty() {
            paragraph(&mut lines, "Server, settings, client and plan are the same.");
        } else {
            lines.push("What differs besides the numbers:".to_owned());
        }
        for difference in &self.differences {
            let [a, b] = [&difference.a, &difference.b]
                .map(|value| if value.is_empty() { "(not set)" } else { value });
            lines.extend(wrap(&format!("  {}: {a} → {b}", difference.what), width, 4));
        }
        for warning in &self.warnings {
            paragraph(&mut lines, &format!("Warning: {warning}"));
        }
        lines.push(String::new());
        for text in LEGEND {
            paragraph(&mut lines, text);
        }
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n") + "\n"
    }
}
