//! Help and version: on standard output, with status 0.

use crate::support::scene::Scene;

#[test]
fn help_and_version() {
    let scene = Scene::new();
    for (arguments, texts) in [
        (&["--help"][..], &["Usage: isobench", "compare", "run", "init", "server", "Exit status: 0"][..]),
        (&["-h"], &["Usage: isobench"]),
        (&["help"], &["Usage: isobench"]),
        (&["--version"], &["isobench 0."]),
        (&["-V"], &["isobench 0."]),
        (
            &["compare", "--help"],
            &["--levels", "--workload", "--rounds", "--backoff", "--plan", "--keep", "-h, --host"],
        ),
        (&["compare", "-?"], &["--levels"]),
        (&["run", "--help"], &["--isolation", "--max-tries", "--failures-detailed", "--server-bin"]),
        (&["run", "-?"], &["--isolation"]),
        (&["init", "--help"], &["--init-steps", "--foreign-keys", "--partitions"]),
        (&["init", "-?"], &["--init-steps"]),
        (&["server", "--help"], &["--server-setting"]),
        (&["help", "compare"], &["--levels"]),
    ] {
        let finished = scene.run(arguments).expect(0).prints(texts);
        assert_eq!(finished.stderr, "", "{arguments:?}");
    }
}

/// As in pgbench, `-?` alone is enough.
#[test]
fn a_question_mark_is_help() {
    Scene::new().run(&["-?"]).expect(0).prints(&["Usage: isobench"]);
}

#[test]
fn the_list_of_scripts_needs_no_server() {
    let finished = Scene::new().run(&["run", "-b", "list"]).expect(0);
    let finished = finished.says(&[
        "Available builtin scripts:",
        "tpcb-like: <builtin: TPC-B (sort of)>",
        "select-only",
    ]);
    assert_eq!(finished.stdout, "");
}
