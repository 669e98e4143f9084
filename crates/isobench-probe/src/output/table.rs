//! Lays out a result as libpq's `PQprint` does: columns of numbers right-aligned, others
//! left-aligned, widths in bytes.

use std::fmt::Write as _;

use crate::event::Table;

/// The table with its row count; empty if there are no columns.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    if table.columns.is_empty() {
        return out;
    }
    let columns: Vec<(usize, bool)> =
        table.columns.iter().enumerate().map(|(index, name)| layout(table, index, name)).collect();
    line(&mut out, &columns, table.columns.iter().map(String::as_str));
    let borders: Vec<String> = columns.iter().map(|(width, _)| "-".repeat(*width)).collect();
    out.push_str(&borders.join("+"));
    out.push('\n');
    for row in &table.rows {
        line(&mut out, &columns, row.iter().map(|value| value.as_deref().unwrap_or("")));
    }
    let count = table.rows.len();
    let plural = if count == 1 { "" } else { "s" };
    // Writing to a String can't fail.
    let _ = write!(out, "({count} row{plural})\n\n");
    out
}

/// A column's width in bytes, and whether it is right-aligned.
fn layout(table: &Table, index: usize, name: &str) -> (usize, bool) {
    let values =
        || table.rows.iter().filter_map(|row| row.get(index)?.as_deref()).filter(|text| !text.is_empty());
    let width = values().map(str::len).max().unwrap_or(0).max(name.len());
    (width, values().all(is_number))
}

/// True if `PQprint` takes the text for a number, by a superficial check.
fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'E' | b'e' | b' ' | b'-'))
        && !matches!(bytes.first(), Some(b'E' | b'e'))
        && bytes.last().is_some_and(u8::is_ascii_digit)
}

fn line<'a>(out: &mut String, columns: &[(usize, bool)], values: impl Iterator<Item = &'a str>) {
    for (index, ((width, right), value)) in columns.iter().zip(values).enumerate() {
        if index > 0 {
            out.push('|');
        }
        let blanks = " ".repeat(width.saturating_sub(value.len()));
        let (first, second) = if *right { (blanks.as_str(), value) } else { (value, blanks.as_str()) };
        out.push_str(first);
        out.push_str(second);
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_number_goes_to_the_right() {
        for (text, number) in [
            ("1e5", true),
            ("1 2", true),
            ("-1.5", true),
            ("e1", false),
            ("12E", false),
            ("5 ", false),
            ("-", false),
        ] {
            assert_eq!(is_number(text), number, "{text:?}");
        }
    }
}
