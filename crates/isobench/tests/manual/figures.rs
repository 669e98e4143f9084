//! The tables of figures are those of the program.

use std::fmt::Write as _;

use isobench_result::FIGURES;
use isobench_result::figure::{Better, OfRound};
use isobench_testkit::golden;

use crate::markdown::{page, root};

const PAGE: &str = "reference/result-format.md";

#[test]
fn columns_of_figures_are_those_of_the_program() {
    let mut text = page(PAGE);
    golden::fill_with(&mut text, "round-figures", &of_rounds());
    golden::expect(root().join("docs").join(PAGE), &text);
}

/// The table of all figures, for the page on commands.
pub fn of_cells() -> String {
    let head = "| METRIC | is | of | better | interval |\n|---|---|---|---|---|\n";
    FIGURES.iter().fold(head.to_owned(), |mut table, figure| {
        let better = match figure.better {
            Better::More => "more",
            Better::Less => "less",
            Better::Neither => "–",
        };
        let interval = if figure.has_interval() { "yes" } else { "no" };
        let names = std::iter::once(figure.name).chain(figure.aliases.iter().copied());
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let (names, meaning, population) = (names.join(", "), figure.meaning, figure.population);
        writeln!(table, "| {names} | {meaning} | {population} | {better} | {interval} |").expect("writes");
        table
    })
}

fn of_rounds() -> String {
    let head = "| column | type | nullable | holds | in |\n|---|---|---|---|---|\n";
    FIGURES.iter().fold(head.to_owned(), |mut table, figure| {
        let kind = match figure.of_round {
            None => return table,
            Some(OfRound::Number(_)) => "DOUBLE | yes",
            Some(OfRound::Count(_)) => "BIGINT | yes",
            Some(OfRound::Total(_)) => "BIGINT | no",
        };
        writeln!(table, "| `{}` | {kind} | {} | rounds |", figure.name, figure.meaning).expect("writes");
        table
    })
}
