//! A pair for a pull request comment: the table, what differs, what must be known.

use super::Pair;
use super::table::{levels, table};
use super::text::LEGEND;
use crate::markdown::{self, escape};
use crate::view::{Entry, Heading, Table};

impl Pair {
    /// Renders the pair as GitHub-flavoured Markdown.
    pub fn to_markdown(&self) -> String {
        let mut blocks = vec![
            format!("- {}\n- {}", escape(&self.a.describe("A")), escape(&self.b.describe("B"))),
            if self.cells.is_empty() {
                "No cell of A has its like in B, so there is nothing to compare.".to_owned()
            } else {
                markdown::table(&table(&self.cells))
            },
        ];
        if !self.levels.is_empty() {
            blocks.push(markdown::table(&levels(&self.levels)));
        }
        for (letter, names) in [('A', &self.only_in_a), ('B', &self.only_in_b)] {
            if !names.is_empty() {
                blocks.push(format!("Only in {letter}: {}.", escape(&names.join("; "))));
            }
        }
        if !self.warnings.is_empty() {
            let lines: Vec<String> =
                self.warnings.iter().map(|warning| format!("- ⚠ {}", escape(warning))).collect();
            blocks.push(lines.join("\n"));
        }
        if !self.differences.is_empty() {
            let rows = self.differences.iter().map(|difference| {
                [&difference.what, &difference.a, &difference.b]
                    .map(|text| Entry::from(text.as_str()))
                    .to_vec()
            });
            let columns = Heading::all(&[("what differs", false), ("A", false), ("B", false)]);
            blocks.push(markdown::table(&Table::new(columns, rows)));
        }
        blocks.push(LEGEND.join(" "));
        blocks.join("\n\n") + "\n"
    }
}
