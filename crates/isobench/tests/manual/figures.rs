//! The names of figures are those of the program, and the manual defines each.

use isobench_result::{FIGURES, Figure};

use crate::markdown::{code, page};

/// The names of all figures with their further names, for the page on commands.
pub fn of_cells() -> String {
    let names = |figure: &Figure| {
        let aliases: Vec<String> = figure.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let aliases = if aliases.is_empty() { String::new() } else { format!(" ({})", aliases.join(", ")) };
        format!("`{}`{aliases}", figure.name)
    };
    let list = |interval: bool| {
        let figures = FIGURES.iter().filter(|figure| figure.has_interval() == interval);
        figures.map(names).collect::<Vec<_>>().join(", ")
    };
    format!("- METRIC with an interval: {}\n- without: {}\n", list(true), list(false))
}

#[test]
fn the_page_on_metrics_defines_each_figure() {
    const PAGE: &str = "reference/metrics.md";
    let defined: Vec<String> = code(&page(PAGE)).iter().map(|name| name.replace('.', "_")).collect();
    for figure in FIGURES {
        assert!(defined.iter().any(|name| name == figure.name), "{PAGE} doesn't define {}", figure.name);
    }
}
