//! A table in GitHub-flavoured Markdown, whose source is aligned, too.
//!
//! Knows nothing about benchmarks. Source: GitHub Flavored Markdown Spec, 4.10 Tables (extension).

use unicode_width::UnicodeWidthStr;

use isobench_result::view::{Entry, Medium, Table};

/// The lines of a table, without a newline at the end. Lines of an entry are parted by breaks;
/// headings of rows are left out.
pub fn table(table: &Table) -> String {
    let right: Vec<bool> = table.columns.iter().map(|column| column.right).collect();
    let titles: Vec<String> = table.columns.iter().map(|column| escape(&column.name())).collect();
    let rows: Vec<Vec<String>> =
        table.entries().map(|entries| entries.iter().map(broken).collect()).collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).chain([&titles[column]]);
            // A rule has three characters at least.
            cells.map(|text| text.width()).fold(3, usize::max)
        })
        .collect();
    let rule = widths
        .iter()
        .zip(&right)
        .map(|(width, right)| if *right { "-".repeat(width - 1) + ":" } else { "-".repeat(*width) });
    let rule: Vec<String> = rule.collect();
    let mut lines = vec![line(&titles, &widths, &right), line(&rule, &widths, &right)];
    lines.extend(rows.iter().map(|row| line(row, &widths, &right)));
    lines.join("\n")
}

fn line(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let padded = cells.iter().zip(widths).zip(right).map(|((text, width), right)| {
        let blanks = " ".repeat(width.saturating_sub(text.width()));
        if *right { blanks + text } else { text.to_owned() + &blanks }
    });
    format!("| {} |", padded.collect::<Vec<_>>().join(" | "))
}

fn broken(entry: &Entry) -> String {
    let lines: Vec<String> = entry.lines(Medium::Text).iter().map(|line| escape(&line.text)).collect();
    lines.join("<br>")
}

/// The text with everything escaped that Markdown or HTML would take for its own, in one line.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_result::view::Heading;

    #[test]
    fn columns_are_aligned_in_the_source() {
        let example = Table::new(
            vec![Heading::new("level", "", false), Heading::new("n", "", true)],
            [
                vec![Entry::Stack(vec!["a|b".into(), "→ c".into()]), "12".into()],
                vec!["é".into(), "<1".into()],
            ],
        );
        assert_eq!(
            table(&example).lines().collect::<Vec<_>>(),
            [
                "| level       |     n |",
                "| ----------- | ----: |",
                "| a\\|b<br>→ c |    12 |",
                "| é           | &lt;1 |"
            ]
        );
    }

    #[test]
    fn what_markdown_would_take_for_its_own_is_escaped() {
        assert_eq!(
            escape("a_b *c* `d` [e](f)\n<g> & \\h"),
            "a\\_b \\*c\\* \\`d\\` \\[e\\](f) &lt;g> &amp; \\\\h"
        );
    }
}
