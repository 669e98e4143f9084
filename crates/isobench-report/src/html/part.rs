//! What several sections use: names of cells, tables, small words.
//!
//! Not here: what any section says.

use maud::{Markup, html};

use crate::document::{Cell, Document, Plan, Server};
use crate::factors::varying;
use crate::numbers::{MISSING, counted};
use crate::text::layout::{Row, Table};

/// Product and version.
pub fn server_name(server: &Server) -> String {
    let product = if server.product.is_empty() { "an unknown server" } else { &server.product };
    let standby = if server.hot_standby { ", a hot standby" } else { "" };
    format!("{}{standby}", format!("{product} {}", server.version).trim_end())
}

/// The text with its first letter in upper case.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// "3 rounds of 5 s", as far as the plan tells.
pub fn length(plan: &Plan) -> Option<String> {
    let rounds = counted(plan.rounds.into(), "round");
    match (plan.time_s, plan.transactions) {
        (Some(seconds), _) => Some(format!("{rounds} of {} s", given(seconds))),
        (None, Some(transactions)) => {
            Some(format!("{rounds} of {} per client", counted(transactions, "transaction")))
        }
        (None, None) => None,
    }
}

/// A cell in words: its level, and the factors in which the cells of the document differ.
pub fn cell_name(document: &Document, cell: &Cell) -> String {
    let mut parts = vec![cell.level.name()];
    if cell.calibration {
        parts.push("once more (A/A)".to_owned());
    }
    parts.extend(varying(document).iter().map(|factor| factor.named(cell)));
    parts.join(", ")
}

/// The cells that were measured at all.
pub fn measured(document: &Document) -> impl Iterator<Item = &Cell> {
    document.cells.iter().filter(|cell| !cell.rounds.is_empty())
}

/// A heading of a table's column, and whether numbers stand in it.
pub type Title<'a> = (&'a str, bool);

/// A table whose first column names its rows; rows of one name stand together under it. A cell's first line is its value,
/// the others explain it. It scrolls within itself where the
/// page is narrow.
pub fn table(caption: &str, titles: &[Title], rows: &[Vec<String>]) -> Markup {
    let class = |index: usize, cell: &str| {
        let number = titles.get(index).is_some_and(|title| title.1);
        match (number, is_brand(cell)) {
            (true, true) => Some("number brand"),
            (true, false) => Some("number"),
            (false, true) => Some("brand"),
            (false, false) => None,
        }
    };
    let groups: Vec<&[Vec<String>]> = rows.chunk_by(|one, next| one.first() == next.first()).collect();
    let table = html! {
        table {
            caption { (caption) }
            thead {
                tr {
                    @for (title, number) in titles {
                        th scope="col" class=[number.then_some("number")] { (title) }
                    }
                }
            }
            @for group in groups {
                tbody {
                    @for (place, row) in group.iter().enumerate() {
                        tr {
                            @if place == 0 { (row_name(group)) }
                            @for (index, cell) in row.iter().enumerate().skip(1) {
                                td class=[class(index, cell)] { (stacked(cell)) }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(caption, &table)
}

/// A table that was laid out for a terminal, with the lines of its cells below one another.
pub fn of_table(caption: &str, laid_out: &Table) -> Markup {
    let names: Vec<String> =
        laid_out.titles.iter().map(|(title, unit, _)| format!("{title} {unit}").trim().to_owned()).collect();
    let titles: Vec<Title> =
        names.iter().zip(&laid_out.titles).map(|(name, (_, _, right))| (name.as_str(), *right)).collect();
    let cells = laid_out.rows.iter().filter_map(|row| match row {
        Row::Cells(cells) => Some(cells.iter().map(|lines| lines.join("\n")).collect()),
        Row::Heading(_) => None,
    });
    let rows: Vec<Vec<String>> = cells.collect();
    table(caption, &titles, &rows)
}

/// The lines of a cell: the first, and smaller ones below it.
fn stacked(text: &str) -> Markup {
    match text.split_once('\n') {
        None => html! { (text) },
        Some((first, rest)) => {
            html! { (first) " " @for line in rest.lines() { span class="below" { (line) } " " } }
        }
    }
}

/// The heading of rows of one name.
fn row_name(group: &[Vec<String>]) -> Markup {
    let name = group.first().and_then(|row| row.first()).map_or("", String::as_str);
    match group.len() {
        0 | 1 => html! { th scope="row" { (stacked(name)) } },
        rows => html! { th scope="rowgroup" rowspan=(rows) { (stacked(name)) } },
    }
}

/// Something wide, in a box that scrolls by pointer and by keyboard.
pub fn scrolling(label: &str, content: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(label) tabindex="0" { (content) }
    }
}

/// Names with their values.
pub fn pairs(pairs: &[(String, String)]) -> Markup {
    html! {
        dl class="pairs" {
            @for (name, value) in pairs {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// Text of a program, to be read or taken along.
pub fn code(id: &str, label: &str, file: &str, text: &str) -> Markup {
    html! {
        div class="code" {
            div class="codebar" {
                span { (label) }
                button type="button" class="save" data-save=(id) data-file=(file) hidden { "Save as file" }
            }
            pre id=(id) tabindex="0" aria-label=(label) { code { (text) } }
        }
    }
}

/// The words that say: don't trust this, or what it says is bad.
const BRANDS: [&str; 10] =
    ["INCOMPLETE", "BROKEN", "BROKE", "BREAKS", "VIOLATED", "WRONG", "ERRORED", "LOST", "DIFFERS", "DIFFER"];

/// True if a line brands what it stands at.
pub fn is_brand(line: &str) -> bool {
    line.split(|letter: char| !letter.is_ascii_alphabetic()).any(|word| BRANDS.contains(&word))
}

/// A number of seconds or milliseconds from a plan, with no more digits than it was given.
pub fn given(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { MISSING.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_capitals_brand() {
        assert!(is_brand("promise BROKEN") && is_brand("INCOMPLETE 2/3") && is_brand("VIOLATED 12"));
        assert!(!is_brand("promise unbroken") && !is_brand("G-single") && !is_brand("→ serializable"));
        assert!(!is_brand("a conflict at command UPDATE t"));
    }

    #[test]
    fn a_text_is_never_markup() {
        let page = table("<b>", &[("<i>", false)], &[vec!["\"<script>&".to_owned()]]).into_string();
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<script>"), "{page}");
    }
}
