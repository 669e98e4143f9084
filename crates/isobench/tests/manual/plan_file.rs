//! The plan file in the manual has every key, and the program accepts it.

use std::fs;
use std::process::Stdio;

use crate::isobench;
use crate::markdown::{blocks, page};

/// Keys that only published experiments have.
const NOT_SHOWN: [&str; 3] = ["server-settings", "full", "experiment"];

#[test]
fn the_plan_shown_is_complete_and_valid() {
    let text = page("guide/own-workloads.md");
    let plan = blocks(&text, "toml").into_iter().next().expect("the page shows a plan");
    let keys = isobench_plan::keys();
    assert!(keys.len() > 10, "{keys:?}");
    for key in keys.iter().filter(|key| !NOT_SHOWN.contains(&key.as_str())) {
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
    // The server doesn't exist: the plan is parsed before connecting.
    let output = isobench()
        .args(["compare", "--plan", "plan.toml", "-d", "postgresql:///none?host=/nonexistent"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("isobench runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/nonexistent"), "the plan is refused: {said}");
}
