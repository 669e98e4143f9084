//! Parts that several sections use: names of cells, tables, boxes.
//!
//! Not here: what any section says.

use maud::{Markup, html};

use super::room;
use isobench_result::document::{Cell, Document};
use isobench_result::factor::varying;
use isobench_result::view::{Entry, Heading, Line, Mark, Medium, Table};

/// A cell in words: its level, and the factors in which the cells of the document differ.
pub fn cell_name(document: &Document, cell: &Cell) -> String {
    let mut parts = vec![cell.level.name()];
    if cell.calibration {
        parts.push(Mark::Again.line().text);
    }
    parts.extend(varying(document).iter().map(|factor| factor.named(cell)));
    parts.join(", ")
}

/// The cells that were measured at all.
pub fn measured(document: &Document) -> impl Iterator<Item = &Cell> {
    document.cells.iter().filter(|cell| !cell.rounds.is_empty())
}

/// A table whose first column names its rows. An entry's first line is its value, the others
/// explain it. Where there is little room each row is a card, in which entries have the headings of
/// their columns as labels.
pub fn table(caption: &str, table: &Table) -> Markup {
    let rows: Vec<&[Entry]> = table.entries().collect();
    let groups = rows.chunk_by(|one, next| one.first() == next.first());
    let column = |index: usize| table.columns.get(index);
    let right = |index: usize| column(index).is_some_and(|column| column.right);
    let cards = room::has_cards(table.columns.len(), rows.len());
    let label = |index: usize| column(index).filter(|_| cards).map(Heading::name);
    let markup = html! {
        table class=(fit(if cards { table.columns.len() } else { 0 })) {
            caption { (caption) }
            thead {
                tr {
                    @for column in &table.columns {
                        th scope="col" class=[column.right.then_some("number")] { (column.name()) }
                    }
                }
            }
            @for group in groups {
                tbody {
                    @for (place, row) in group.iter().enumerate() {
                        tr {
                            @let name = row.first().map(|name| stacked(&name.lines(Medium::Page)));
                            th scope="row" class=[(place > 0).then_some("repeated")] {
                                @if let Some(name) = name { (name) }
                            }
                            @for (index, entry) in row.iter().enumerate().skip(1) {
                                @let lines = entry.lines(Medium::Page);
                                td class=[class(&lines, right(index))] data-label=[label(index)] { (stacked(&lines)) }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(caption, &markup)
}

/// The classes of tables that become narrow: the most columns, and the width in rem up to which the columns don't
/// fit beside each other. Tables of two columns always fit.
const NARROW: [(&str, usize, u32); 5] =
    [("few", 4, 30), ("some", 6, 46), ("many", 9, 60), ("most", 12, 68), ("all", usize::MAX, 82)];

/// The columns that always fit.
const ALWAYS_FIT: usize = 2;

/// The class that says from what width on so many columns stand beside each other.
pub fn fit(columns: usize) -> String {
    let class = NARROW.iter().find(|(_, most, _)| columns > ALWAYS_FIT && columns <= *most);
    class.map_or_else(|| "fit".to_owned(), |(name, ..)| format!("fit {name}"))
}

/// The style of tables that are wider than their place: a row is a card. In `narrow.css`, NAME stands for the class.
pub fn narrow() -> String {
    let rules = include_str!("narrow.css");
    let of_class = |(name, _, width): &(&str, usize, u32)| {
        let rules = rules.replace(".NAME", &format!(".{name}"));
        format!("@media screen {{ @container (max-width: {width}rem) {{\n{rules}}} }}\n")
    };
    NARROW.iter().map(of_class).collect()
}

/// The class of an entry: right-aligned or not, grave or not.
fn class(lines: &[Line], number: bool) -> Option<&'static str> {
    match (number, lines.iter().any(Line::is_grave)) {
        (true, true) => Some("number brand"),
        (true, false) => Some("number"),
        (false, true) => Some("brand"),
        (false, false) => None,
    }
}

/// The first line, and smaller ones below it; a user's words may have several lines, too.
fn stacked(lines: &[Line]) -> Markup {
    let mut texts = lines.iter().flat_map(|line| line.text.split('\n'));
    html! {
        (texts.next().unwrap_or_default())
        @for text in texts.filter(|text| !text.is_empty()) { " " span class="below" { (text) } }
    }
}

/// A part that is folded until a reader asks for it, where that is so; else as it is.
pub fn folded(folded: bool, summary: &str, content: &Markup) -> Markup {
    html! {
        @if folded {
            details class="folded" { summary { (summary) } (content) }
        } @else {
            (content)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emphasis_follows_from_the_meaning_and_not_from_the_words() {
        let columns = Heading::all(&[("level", false), ("count", true), ("verdict", false)]);
        let rows = [
            vec!["a".into(), 1.into(), "BROKEN".into()],
            vec!["b".into(), Entry::grave("= 2"), "! drifts".into()],
        ];
        let page = table("", &Table::new(columns, rows)).into_string();
        assert!(page.contains("<td class=\"number brand\" data-label=\"count\">= 2</td>"), "{page}");
        assert_eq!(page.matches("brand").count(), 1, "{page}");
    }

    #[test]
    fn a_text_is_never_markup() {
        let page = table("<b>", &Table::new(Heading::all(&[("<i>", false)]), [vec!["\"<script>&".into()]]));
        let page = page.into_string();
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<script>"), "{page}");
    }
}
