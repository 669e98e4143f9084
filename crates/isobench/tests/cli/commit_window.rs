//! The commit window of PostgreSQL's serializable level, which `bench/commit-window` holds open with a debugger: a
//! release that closes it, or opens another one, shows here.

use std::path::Path;
use std::process::Command;

use crate::support::program::isobench;
use crate::support::scene::Scene;
use crate::support::skip;

/// Runs the script; `None` after printing the reason if that is impossible.
fn tried(test: &str, scene: &Scene, options: &[&str]) -> Option<(Option<i32>, String)> {
    for program in ["gdb", "psql"] {
        if Command::new(program).arg("--version").output().is_err() {
            skip(test, &format!("{program} isn't installed"));
            return None;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/commit-window");
    let mut command = scene.program(&script, &["--isobench", &isobench()]);
    let output = command.args(options).output().expect("the script starts");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if text.contains("the debugger couldn't attach") {
        skip(test, "the debugger may not attach to the server (kernel.yama.ptrace_scope)");
        return None;
    }
    Some((output.status.code(), text))
}

#[test]
fn serializable_permits_a_cycle_in_the_commit_window_and_only_there() {
    let test = "serializable_permits_a_cycle_in_the_commit_window_and_only_there";
    let Some(scene) = Scene::with_server(test) else { return };
    let Some((status, text)) = tried(test, &scene, &["--no-stop"]) else { return };
    assert!(status == Some(4) && text.contains("prevented: "), "{text}");
    let Some((status, text)) = tried(test, &scene, &[]) else { return };
    // If a release closes the window, docs/concept/anomalies.md and docs/reference/probe.md have to say so.
    assert!(status == Some(0) && text.contains("PERMITTED: batch 1 was closed"), "{text}");
}
