//! Help and version: on standard output, with status 0.

use crate::support::scene::Scene;

#[test]
fn help_and_version() {
    let scene = Scene::new();
    for (arguments, texts) in [
        (
            &["--help"][..],
            &[
                "Usage: isobench",
                "compare",
                "run",
                "More commands (see isobench help): record, scripts, observe",
                "Exit status: 0",
            ][..],
        ),
        (&["-h"], &["Usage: isobench"]),
        (&["help"], &["Usage: isobench"]),
        (&["--version"], &["isobench 0."]),
        (&["-V"], &["isobench 0."]),
        (
            &["compare", "--help"],
            &["--levels", "--workload", "--rounds", "--backoff", "--plan", "--help-all", "-h, --host"],
        ),
        (&["compare", "--help-all"], &["--levels", "--keep", "--jobs", "-h, --host"]),
        (&["compare", "-?"], &["--levels"]),
        (&["run", "--help"], &["--isolation", "--max-tries", "--failures-detailed", "--help-all"]),
        (&["run", "--help-all"], &["--isolation", "--random-seed", "--server-bin", "--metrics"]),
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

/// The usual help of the program is ten commands.
#[test]
fn the_help_of_the_program_lists_ten_commands() {
    let help = Scene::new().run(&["--help"]).expect(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<&str> = listed.take_while(|line| line.starts_with("  ")).collect();
    assert_eq!(listed.iter().filter(|line| !line.starts_with("   ")).count(), 10, "{help}");
    // The others are where it says.
    Scene::new().run(&["help"]).expect(0).prints(&["\n  plans ", "\n  completions ", "\n  server "]);
}

/// The short help omits rarely needed options, and says so.
#[test]
fn help_has_a_short_and_a_full_form() {
    for command in ["compare", "audit"] {
        let lines = |form: &str| Scene::new().run(&[command, form]).expect(0).stdout;
        let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
        let options = lines("--help").lines().filter(is_option).count();
        assert!((20..=30).contains(&options), "{command}: {options} options");
        let (short, full) = (lines("--help"), lines("--help-all"));
        assert!(!short.contains("--strict-levels") && full.contains("--strict-levels"), "{short}");
        assert!(short.contains("--help-all lists every one"), "{short}");
        assert!(!full.contains("lists every one"), "{full}");
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
