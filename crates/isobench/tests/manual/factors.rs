//! The factors on the page on commands are those of the program.

use isobench_result::factor::{Compared, KINDS, Kind, Of};

/// All factors with their options, by what rows are compared with, for the page on commands.
pub fn table() -> String {
    let groups = [
        ("Compared with the first level", Compared::ToFirstLevel),
        ("Compared with the first strategy", Compared::ToFirstStrategy),
        ("Compared with the first settings", Compared::ToFirstSetting),
        ("Not compared", Compared::Never),
    ];
    let line = |(title, compared): (&str, Compared)| {
        let kinds = KINDS.iter().filter(|kind| kind.compared == compared);
        let kinds: Vec<String> = kinds.map(|kind| format!("`{}` (`{}`)", name(kind), kind.option)).collect();
        format!("- {title}: {}\n", kinds.join(", "))
    };
    groups.map(line).concat()
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
