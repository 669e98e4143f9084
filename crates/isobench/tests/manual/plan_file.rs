//! The plan file that the manual shows has every key, and the program takes it.

use std::fs;
use std::process::{Command, Stdio};

use crate::commands::{help, long_options};
use crate::markdown::{blocks, page};

/// Options of `compare` in its first group that say what to do with the plan, and so are no part of
/// it.
pub const NOT_IN_A_PLAN: [&str; 8] =
    ["--plan", "--quick", "--full", "--json", "--csv", "--keep", "--live", "--no-observe"];

/// The first group of options in a help text.
pub fn first_group(help: &str) -> String {
    let group = help.split("\n\n").find(|group| group.starts_with("Options:"));
    group.expect("help has options").to_owned()
}

#[test]
fn the_plan_shown_is_complete_and_valid() {
    let text = page("guide/own-workloads.md");
    let plan = blocks(&text, "toml").into_iter().next().expect("the page shows a plan");
    let keys: Vec<String> = long_options(&first_group(&help("compare")))
        .into_iter()
        .filter(|option| !NOT_IN_A_PLAN.contains(&option.as_str()))
        .map(|option| option.trim_start_matches("--").to_owned())
        .collect();
    assert!(keys.len() > 10, "{keys:?}");
    for key in &keys {
        let shown = plan.lines().any(|line| {
            let line = line.trim_start_matches("# ");
            line.strip_prefix(key.as_str()).is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        assert!(shown, "the plan in guide/own-workloads.md has no key {key}");
    }

    let folder = tempfile::tempdir().expect("a folder");
    for file in ["transfer.sql", "report.sql"] {
        fs::write(folder.path().join(file), "SELECT 1;\n").expect("a script");
    }
    fs::write(folder.path().join("tables.sql"), "SELECT 1;\n").expect("a script");
    fs::write(folder.path().join("plan.toml"), &plan).expect("a plan");
    // A server that isn't there: the plan is understood before anybody connects.
    let output = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(["compare", "--plan", "plan.toml", "-d", "postgresql:///none?host=/nonexistent"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("isobench runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/nonexistent"), "the plan is refused: {said}");
}
