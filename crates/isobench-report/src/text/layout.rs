//! Lines and columns: a table of cells with several lines, and wrapped text.
//!
//! Knows widths of characters and nothing about benchmarks.

use unicode_width::UnicodeWidthStr;

/// One line of titles and rows below.
pub struct Table {
    /// For each column the two lines of its heading, and whether it is aligned to the right.
    pub titles: Vec<(String, String, bool)>,
    /// What stands below.
    pub rows: Vec<Row>,
}

/// The heading of a column: its two lines, and whether it is aligned to the right.
pub fn title(title: impl Into<String>, unit: impl Into<String>, right: bool) -> (String, String, bool) {
    (title.into(), unit.into(), right)
}

/// A row of a table.
pub enum Row {
    /// A line across all columns, above the rows that it describes.
    Heading(String),
    /// For each column the lines of its cell.
    Cells(Vec<Vec<String>>),
}

impl Table {
    /// The width with a single blank between columns.
    pub fn least_width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + widths.len().saturating_sub(1)
    }

    /// The lines of the table, with wider gaps where `width` allows.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let widths = self.widths();
        let roomy = self.least_width() + widths.len().saturating_sub(1) <= width;
        let gap = if roomy { "  " } else { " " };
        let first: Vec<Vec<String>> =
            self.titles.iter().map(|(title, unit, _)| vec![title.clone(), unit.clone()]).collect();
        let mut lines = self.row_lines(&first, &widths, gap);
        let rule = "─".repeat(widths.iter().sum::<usize>() + gap.len() * widths.len().saturating_sub(1));
        lines.push(rule);
        for (index, row) in self.rows.iter().enumerate() {
            match row {
                Row::Heading(text) => {
                    if index > 0 {
                        lines.push(String::new());
                    }
                    lines.extend(wrap(text, width, 2));
                }
                Row::Cells(cells) => lines.extend(self.row_lines(cells, &widths, gap)),
            }
        }
        lines
    }

    fn row_lines(&self, cells: &[Vec<String>], widths: &[usize], gap: &str) -> Vec<String> {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|line| {
                let texts =
                    cells.iter().zip(widths).zip(&self.titles).map(|((cell, width), (_, _, right))| {
                        pad(cell.get(line).map_or("", String::as_str), *width, *right)
                    });
                texts.collect::<Vec<_>>().join(gap).trim_end().to_owned()
            })
            .collect()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.titles.iter().map(|(title, unit, _)| title.width().max(unit.width())).collect();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.iter().map(|line| line.width()).fold(*width, usize::max);
            }
        }
        widths
    }
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if right { blanks + text } else { text.to_owned() + &blanks }
}

/// Units that stay on the line of their number.
const UNITS: [&str; 3] = ["%", "s", "ms"];

/// Breaks a text into lines of at most `width` columns where it has blanks; all but the first are indented.
///
/// Runs of blanks in the first line are kept, and a unit stays with its number. What is longer than a line stands
/// alone in it.
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
            titles: vec![title("name", "", false), title("n", "per s", true)],
            rows: vec![
                Row::Heading("first".to_owned()),
                Row::Cells(vec![vec!["é".to_owned(), "→ x".to_owned()], vec!["12".to_owned()]]),
            ],
        };
        assert_eq!(table.least_width(), 10);
        assert_eq!(table.lines(10), ["name     n", "     per s", "──────────", "first", "é       12", "→ x"]);
        assert_eq!(table.lines(11)[0], "name      n");
    }
}
