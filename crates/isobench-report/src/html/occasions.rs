//! The pages of several results: two side by side, and one figure over many. Style, script and parts
//! are those of the page of one result.
//!
//! Not here: what is compared (`pair`, `trend`), the picture (`chart/trend`).

use maud::{Markup, html};

use super::chart;
use super::part::table;
use super::pictures::picture;
use super::sheet::{Part, sheet, warnings};
use isobench_result::pair::{Difference, Pair};
use isobench_result::trend::{Trend, TrendSeries};
use isobench_result::view::{Entry, Heading, Table};

/// The page of two results.
pub fn pair(pair: &Pair, cells: &Table, levels: Option<&Table>, legend: &[&str]) -> String {
    let nothing = html! { p { "No cell of A has its like in B, so there is nothing to compare." } };
    let mut parts: Vec<Part> = vec![(
        "cells",
        "Side by side",
        html! {
            (warnings(&pair.warnings))
            @if pair.cells.is_empty() { (nothing) }
            @else { (table("The cells that both results have, A above B.", cells)) }
            @for (letter, names) in [("A", &pair.only_in_a), ("B", &pair.only_in_b)] {
                @if !names.is_empty() { p { "Only in " (letter) ": " (names.join("; ")) "." } }
            }
        },
    )];
    parts.extend(levels.map(|levels| -> Part {
        let caption = "The rate of each level as a multiple of the first level's in the same rounds.";
        ("levels", "What each level costs", table(caption, levels))
    }));
    parts.push(("differences", "What differs besides the numbers", differences(&pair.differences)));
    parts.push(meaning(legend));
    let results = [pair.a.describe("A"), pair.b.describe("B")];
    page("Two results side by side", &results, &parts)
}

/// The page of one figure over many results.
pub fn trend(trend: &Trend, legend: &[String], numbers: fn(&TrendSeries) -> Table) -> String {
    let figures = chart::trend(trend);
    let nothing = html! { p { "No result has a value, so there is nothing to show." } };
    let drawn = html! {
        (warnings(&trend.left_out))
        @if trend.series.is_empty() { (nothing) }
        @for figure in &figures { (picture(figure, false)) }
    };
    let cells = html! {
        @for series in &trend.series {
            h3 { (series.title()) }
            (table(&series.said().join(" "), &numbers(series)))
        }
    };
    let legend: Vec<&str> = legend.iter().map(String::as_str).collect();
    let parts = [("trend", "How it went", drawn), ("cells", "The numbers", cells), meaning(&legend)];
    page(&trend.heading(), &[], &parts)
}

fn meaning(legend: &[&str]) -> Part {
    let items = html! { ul { @for text in legend { li { (text) } } } };
    ("meaning", "What the numbers mean", items)
}

fn differences(differences: &[Difference]) -> Markup {
    if differences.is_empty() {
        return html! { p { "Server, settings, client and plan are the same." } };
    }
    let columns = Heading::all(&[("what", false), ("A", false), ("B", false)]);
    let rows = differences.iter().map(|difference| {
        [&difference.what, &difference.a, &difference.b].map(|text| Entry::from(text.as_str())).to_vec()
    });
    table("Server, client and plan, as the results have them.", &Table::new(columns, rows))
}

/// A page about results, each with its letter.
fn page(title: &str, results: &[String], parts: &[Part]) -> String {
    let named: Vec<(String, String)> = results
        .iter()
        .filter_map(|result| result.split_once(": "))
        .map(|(letter, text)| (format!("Result {letter}"), text.to_owned()))
        .collect();
    sheet(title, &named, parts, "Results of different measurement versions must not be compared.")
}
