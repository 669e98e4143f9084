//! One line per round and cell, for spreadsheets and scripts.
//!
//! Comma-separated values of RFC 4180 with a line of titles; empty where there is no value. What a
//! pair or a series has, too, has the same title there. Not here: the columns (`columns.rs`), and
//! summaries.

use isobench_result::columns::{Column, Place, Values, csv_columns, rounds};
use isobench_result::document::Document;

/// The first titles of the first line.
pub fn titles(count: usize) -> String {
    csv_columns().take(count).map(|column| column.name).collect::<Vec<_>>().join(",")
}

/// Renders every round of every cell as a line of comma-separated values, titles first.
pub fn to_csv(document: &Document) -> String {
    let mut text = line(csv_columns().map(|column| column.name.to_owned()));
    for place in rounds(document) {
        text += &line(csv_columns().map(|column| field(column, &place)));
    }
    text
}

/// The value of a column as text.
pub fn field(column: Column, place: &Place<'_>) -> String {
    match column.values {
        Values::Text(value) | Values::Instant(value) => optional(value(place)),
        Values::Word(value) => value(place.cell).into_owned(),
        Values::Count(value) => optional(value.at(place)),
        Values::Number(value) => number(value.at(place)),
        Values::Flag(value) => optional(value(place)),
    }
}

/// A line of fields, quoted where they need it. Text that a spreadsheet would take for a formula gets an
/// apostrophe before it.
pub fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quote(&inert(field))).collect::<Vec<_>>().join(",") + "\n"
}

/// The field, which no spreadsheet calculates. Source: OWASP, "CSV Injection".
fn inert(field: String) -> String {
    let calculates = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    if !field.starts_with(calculates) || is_number(&field) { field } else { format!("'{field}") }
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok_and(f64::is_finite)
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A number with every digit; empty if there is none.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::{line, number, quote};

    #[test]
    fn text_is_no_formula_and_numbers_stay() {
        let fields = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\ta", "\r=a", "a=b", "-inf", ""];
        assert_eq!(
            line(fields.into_iter().map(str::to_owned)),
            "'=1+1,'+cmd|' /C calc'!A0,'-2+3,'@SUM(A1),'\ta,\"'\r=a\",a=b,'-inf,\n"
        );
        let numbers = [number(Some(-1.5)), "-3".to_owned(), "1e-7".to_owned(), "-2.5e+10".to_owned()];
        assert_eq!(line(numbers.into_iter()), "-1.5,-3,1e-7,-2.5e+10\n");
    }

    #[test]
    fn fields_with_commas_or_quotes_are_quoted() {
        assert_eq!(quote("a b"), "a b");
        assert_eq!(quote("fixed:1ms,\"x\""), "\"fixed:1ms,\"\"x\"\"\"");
    }
}
