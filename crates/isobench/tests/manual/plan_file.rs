//! The program accepts the plan file in the manual.

use std::fs;
use std::process::Stdio;

use crate::isobench;
use crate::markdown::{blocks, page};

#[test]
fn the_plan_shown_is_valid() {
    let text = page("guide/own-workloads.md");
    let plan = blocks(&text, "toml").into_iter().next().expect("the page shows a plan");
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
