//! A table in GitHub-flavoured Markdown, whose source is aligned, too.
//!
//! Knows nothing about benchmarks. Source: GitHub Flavored Markdown Spec, 4.10 Tables (extension).

use unicode_width::UnicodeWidthStr;

use crate::text::layout::{Row, Table};

/// The lines of a table, without a newline at the end. Lines of a cell are parted by breaks; headings are left out.
pub fn table(table: &Table) -> String {
    let right: Vec<bool> = table.titles.iter().map(|(_, _, right)| *right).collect();
    let titles = table.titles.iter().map(|(title, unit, _)| escape(format!("{title} {unit}").trim_end()));
    let titles: Vec<String> = titles.collect();
    let cells = table.rows.iter().filter_map(|row| match row {
        Row::Cells(cells) => Some(cells.iter().map(|lines| cell(lines)).collect()),
        Row::Heading(_) => None,
    });
    let rows: Vec<Vec<String>> = cells.collect();
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

fn cell(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
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
    use crate::text::layout::title;

    #[test]
    fn columns_are_aligned_in_the_source() {
        let example = Table {
            titles: vec![title("level", "", false), title("n", "", true)],
            rows: vec![
                Row::Cells(vec![vec!["a|b".to_owned(), "→ c".to_owned()], vec!["12".to_owned()]]),
                Row::Cells(vec![vec!["é".to_owned()], vec!["<1".to_owned()]]),
            ],
        };
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
