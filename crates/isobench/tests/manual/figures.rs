//! The tables of figures are those of the program.

use std::fmt::Write as _;

use isobench_result::FIGURES;
use isobench_result::figure::Better;

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
