//! Lines and columns: a table whose entries have several lines, and wrapped text.
//!
//! Knows widths of characters and nothing about benchmarks.

use unicode_width::UnicodeWidthStr;

use crate::view::{self, Entry, Heading, Medium, Table};

/// A table whose entries are lines of text.
struct Texts<'a> {
    columns: &'a [Heading],
    rows: Vec<TextRow<'a>>,
    /// The width of each column.
    widths: Vec<usize>,
}

enum TextRow<'a> {
    Heading(&'a str),
    /// For each column the lines of its entry.
    Lines(Vec<Vec<String>>),
}

/// The width of a table with a single blank between columns.
pub fn least_width(table: &Table) -> usize {
    Texts::of(table).least_width()
}

/// The lines of a table, with wider gaps where `width` allows.
pub fn lines(table: &Table, width: usize) -> Vec<String> {
    let texts = Texts::of(table);
    let roomy = texts.least_width() + texts.widths.len().saturating_sub(1) <= width;
    let gap = if roomy { "  " } else { " " };
    let first: Vec<Vec<String>> =
        texts.columns.iter().map(|column| vec![column.title.clone(), column.unit.clone()]).collect();
    let mut lines = texts.row_lines(&first, gap);
    let gaps = gap.len() * texts.widths.len().saturating_sub(1);
    lines.push("─".repeat(texts.widths.iter().sum::<usize>() + gaps));
    for (index, row) in texts.rows.iter().enumerate() {
        match row {
            TextRow::Heading(text) => {
                if index > 0 {
                    lines.push(String::new());
                }
                lines.extend(wrap(text, width, 2));
            }
            TextRow::Lines(entries) => lines.extend(texts.row_lines(entries, gap)),
        }
    }
    lines
}

impl Texts<'_> {
    fn of(table: &Table) -> Texts<'_> {
        let texts = |entry: &Entry| -> Vec<String> {
            entry.lines(Medium::Text).into_iter().map(|line| line.text).collect()
        };
        let rows: Vec<TextRow> = table
            .rows
            .iter()
            .map(|row| match row {
                view::Row::Heading(text) => TextRow::Heading(text),
                view::Row::Entries(entries) => TextRow::Lines(entries.iter().map(texts).collect()),
            })
            .collect();
        let mut widths: Vec<usize> =
            table.columns.iter().map(|column| column.title.width().max(column.unit.width())).collect();
        for row in &rows {
            let TextRow::Lines(entries) = row else { continue };
            for (width, lines) in widths.iter_mut().zip(entries) {
                *width = lines.iter().map(|line| line.width()).fold(*width, usize::max);
            }
        }
        Texts { columns: &table.columns, rows, widths }
    }

    fn least_width(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.widths.len().saturating_sub(1)
    }

    fn row_lines(&self, entries: &[Vec<String>], gap: &str) -> Vec<String> {
        let height = entries.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|line| {
                let texts =
                    entries.iter().zip(&self.widths).zip(self.columns).map(|((lines, width), column)| {
                        pad(lines.get(line).map_or("", String::as_str), *width, column.right)
                    });
                texts.collect::<Vec<_>>().join(gap).trim_end().to_owned()
            })
            .collect()
    }
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if right { blanks + text } else { text.to_owned() + &blanks }
}

/// Units that stay on the line of their number.
const UNITS: [&str; 3] = ["%", "s", "ms"];

/// Breaks a text into lines of at most `width` columns where it has blanks; all but the first are
/// indented.
///
/// Runs of blanks in the first line are kept, and a unit stays with its number. What is longer than
/// a line stands alone in it.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ')']));
        match pieces.last_mut() {
            Some(number) if is_unit => *number = format!("{number} {word}"),
            _ => pieces.push(word.to_owned()),
        }
    }
    let mut pieces = pieces.into_iter();
    let mut lines = Vec::new();
    let mut line = pieces.next().unwrap_or_default();
    for piece in pieces {
        let full = line.width() + 1 + piece.width() > width;
        if full && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent) + &piece));
        } else {
            line = line + " " + &piece;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_indented() {
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "  three", "  four"]);
        assert_eq!(wrap("a  b c", 20, 2), ["a  b c"]);
        assert_eq!(wrap("incomprehensibility is long", 6, 1), ["incomprehensibility", " is", " long"]);
        assert_eq!(wrap("", 10, 2), [""]);
        assert_eq!(wrap("takes 5 s, or 7 % of it", 9, 0), ["takes", "5 s, or", "7 % of it"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_line() {
        let table = Table {
            columns: vec![Heading::new("name", "", false), Heading::new("n", "per s", true)],
            rows: vec![
                view::Row::Heading("first".to_owned()),
                view::Row::Entries(vec![Entry::Stack(vec!["é".into(), "→ x".into()]), "12".into()]),
            ],
        };
        assert_eq!(least_width(&table), 10);
        assert_eq!(
            lines(&table, 10),
            ["name     n", "     per s", "──────────", "first", "é       12", "→ x"]
        );
        assert_eq!(lines(&table, 11)[0], "name      n");
    }
}
