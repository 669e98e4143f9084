//! The tables of figures are those of the program.

use std::fmt::Write as _;

use isobench_result::FIGURES;
use isobench_result::figure::{Better, OfRound};
use isobench_testkit::golden;

use crate::markdown::{page, root};

#[test]
fn tables_of_figures_are_those_of_the_program() {
    for (name, block, table) in [
        ("reference/commands.md", "figures", of_cells()),
        ("reference/result-format.md", "round-figures", of_rounds()),
    ] {
        let mut text = page(name);
        golden::fill_with(&mut text, block, &table);
        golden::expect(root().join("docs").join(name), &text);
    }
}

fn of_cells() -> String {
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
