//! The table of factors is that of the program.

use std::fmt::Write as _;

use isobench_result::factor::{Compared, KINDS, Kind, Of};

/// The table of all factors, for the page on commands.
pub fn table() -> String {
    let head = "| factor | by | is | compared |\n|---|---|---|---|\n";
    KINDS.iter().fold(head.to_owned(), |mut table, kind| {
        let compared = match kind.compared {
            Compared::ToFirstLevel => "with the first level",
            Compared::ToFirstStrategy => "with the first strategy",
            Compared::ToFirstSetting => "with the first settings",
            Compared::Never => "–",
        };
        writeln!(table, "| `{}` | `{}` | {} | {compared} |", name(kind), kind.option, kind.meaning)
            .expect("writes");
        table
    })
}

fn name(kind: &Kind) -> String {
    let rest = if matches!(kind.of, Of::VariedFrom) { "NAME" } else { "" };
    format!("{}{rest}", kind.name)
}

/// Every factor is given by an option that there is.
#[test]
fn options_of_factors_exist() {
    let help = crate::commands::help("compare");
    for kind in KINDS {
        let option = kind.option.split(' ').next().unwrap_or_default();
        assert!(help.contains(&format!("{option} ")), "{}: compare has no {option}", kind.name);
    }
}
