//! A series of results, in every layout.
//!
//! Not here: what is compared, and the table (`isobench_result::trend`).

mod csv;

use isobench_result::Trend;
use isobench_result::trend::table::{LEGEND, table};

use crate::text::layout::{self, wrap};
use crate::{Layouts, markdown};

impl Layouts for Trend {
    fn to_text(&self, width: usize) -> String {
        let mut lines: Vec<String> = Vec::new();
        let paragraph = |lines: &mut Vec<String>, text: &str| lines.extend(wrap(text, width, 2));
        for text in self.described() {
            paragraph(&mut lines, &text);
        }
        lines.push(String::new());
        if self.cells.is_empty() {
            paragraph(&mut lines, "No result has a cell, so there is nothing to compare.");
        } else {
            lines.extend(layout::lines(&table(&self.cells), width));
        }
        lines.push(String::new());
        for warning in &self.warnings {
            paragraph(&mut lines, &format!("Warning: {warning}"));
        }
        for text in LEGEND {
            paragraph(&mut lines, text);
        }
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n") + "\n"
    }

    fn to_markdown(&self) -> String {
        let list = |items: Vec<String>| {
            items.iter().map(|item| format!("- {}", markdown::escape(item))).collect::<Vec<_>>().join("\n")
        };
        let mut blocks = vec![list(self.described()), markdown::table(&table(&self.cells))];
        if !self.warnings.is_empty() {
            blocks.push(list(self.warnings.iter().map(|warning| format!("⚠ {warning}")).collect()));
        }
        blocks.push(LEGEND.join(" "));
        blocks.join("\n\n") + "\n"
    }

    fn to_html(&self) -> String {
        crate::html::trend(self, &table(&self.cells), &LEGEND)
    }

    fn to_csv(&self) -> String {
        csv::render(self)
    }
}
