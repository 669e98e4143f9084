//! A pair for a pull request comment: the table, what differs, what must be known.

use isobench_result::Pair;
use isobench_result::pair::table::{LEGEND, levels, table};
use isobench_result::view::{Entry, Heading, Table};

use crate::markdown::{self, escape};

/// Renders the pair as GitHub-flavoured Markdown.
pub fn render(pair: &Pair) -> String {
    let mut blocks = vec![
        format!("- {}\n- {}", escape(&pair.a.describe("A")), escape(&pair.b.describe("B"))),
        if pair.cells.is_empty() {
            "No cell of A has its like in B, so there is nothing to compare.".to_owned()
        } else {
            markdown::table(&table(&pair.cells))
        },
    ];
    if !pair.levels.is_empty() {
        blocks.push(markdown::table(&levels(&pair.levels)));
    }
    for (letter, names) in [('A', &pair.only_in_a), ('B', &pair.only_in_b)] {
        if !names.is_empty() {
            blocks.push(format!("Only in {letter}: {}.", escape(&names.join("; "))));
        }
    }
    if !pair.warnings.is_empty() {
        let lines: Vec<String> =
            pair.warnings.iter().map(|warning| format!("- ⚠ {}", escape(warning))).collect();
        blocks.push(lines.join("\n"));
    }
    if !pair.differences.is_empty() {
        let rows = pair.differences.iter().map(|difference| {
            [&difference.what, &difference.a, &difference.b].map(|text| Entry::from(text.as_str())).to_vec()
        });
        let columns = Heading::all(&[("what differs", false), ("A", false), ("B", false)]);
        blocks.push(markdown::table(&Table::new(columns, rows)));
    }
    blocks.push(LEGEND.join(" "));
    blocks.join("\n\n") + "\n"
}
