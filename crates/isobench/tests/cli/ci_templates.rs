//! The action and the templates for continuous integration: they are valid, name options that exist, and the
//! action's steps do what they are for.

mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::isobench;
use crate::support::scene::Scene;
use crate::support::skip;

const ACTION: &str = "packaging/action/action.yml";

/// A template, by its path from the root of the repository.
fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(template(name)).expect("the template")
}

fn copy(scene: &Scene, name: &str, to: &str) {
    scene.write(to, &text(name));
}

/// The output of a checker, which must be content; nothing after saying so where it is missing.
fn content(test: &str, scene: &Scene, program: &str, arguments: &[&str]) {
    let mut command = scene.program(Path::new(program), arguments);
    match command.output() {
        Err(error) => skip(test, &format!("{program}: {error}")),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {said}");
        }
    }
}

#[test]
fn templates_have_the_shape_that_services_expect() {
    let scene = Scene::new();
    for (schema, name) in [
        ("vendor.github-actions", ACTION),
        ("vendor.github-workflows", "examples/ci/github.yml"),
        ("vendor.gitlab-ci", "examples/ci/gitlab-ci.yml"),
    ] {
        let file = template(name);
        let arguments = ["--builtin-schema", schema, file.to_str().expect("UTF-8")];
        content("templates_have_the_shape_that_services_expect", &scene, "check-jsonschema", &arguments);
    }
}

#[test]
fn the_workflow_uses_the_action_as_it_is() {
    let scene = Scene::new();
    copy(&scene, ACTION, ".github/actions/isobench/action.yml");
    copy(&scene, "examples/ci/github.yml", ".github/workflows/isobench.yml");
    // The checker looks for the root of a repository.
    fs::create_dir(scene.file(".git")).expect("a folder");
    content("the_workflow_uses_the_action_as_it_is", &scene, "actionlint", &[]);
}

/// The words after `isobench` in the template's commands.
#[test]
fn templates_run_isobench_as_it_is() {
    let text = text("examples/ci/gitlab-ci.yml");
    let lines = text.lines().filter_map(|line| line.split_once(" isobench "));
    let commands: Vec<&str> = lines.map(|(_, words)| words).filter(|words| words.contains("--")).collect();
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        let all = if words[0] == "compare" { "--help-all" } else { "--help" };
        let help = Command::new(isobench()).args([words[0], all]).output().expect("help");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "isobench {} has no {option}", words[0]);
        }
    }
}

/// Loses updates where the level doesn't prevent it. What follows its end must not end the block of a summary.
const SELL: &str = "BEGIN;\nSELECT left_over AS n FROM stock WHERE id = 1 \\gset\nUPDATE stock SET left_over = :n - 1 \
    WHERE id = 1 AND '```' <> '';\nCOMMIT;\n";

#[test]
fn the_steps_of_the_action_fail_on_a_race_and_keep_what_was_found() {
    let test = "the_steps_of_the_action_fail_on_a_race_and_keep_what_was_found";
    let Some(s) = Scene::with_database(test) else { return };
    s.write(
        "shop.sql",
        "CREATE TABLE stock (id int PRIMARY KEY, left_over int);\nINSERT INTO stock VALUES (1, 9);\n",
    );
    s.write("sell it.sql", SELL);
    let probe = "-f\nsell it.sql\n--setup\nshop.sql\n--levels\nrc\n--try\n100s\n";
    let ended = steps::run(&s, &text(ACTION), &[("command", "probe"), ("arguments", probe)]);
    let statuses: Vec<Option<i32>> = ended.iter().map(|step| step.status.code()).collect();
    assert_eq!(statuses, [Some(0), Some(3), Some(0)], "{ended:#?}");
    let results = "isobench-results/ci";
    for (file, expected) in [
        ("isobench.xml", "failures=\"1\""),
        ("isobench.sarif", "\"wrong-state\""),
        ("probe.json", "isobench/interleavings"),
        ("comment.md", "    read committed  unsafe (shown): data damaged\n"),
    ] {
        let found = s.read(&format!("{results}/{file}"));
        assert!(found.contains(expected), "{file}: {found}");
    }
    assert_eq!(s.read("GITHUB_STEP_SUMMARY"), s.read(&format!("{results}/comment.md")));
    for output in ["comment=", "junit=", "sarif="] {
        let line =
            s.read("GITHUB_OUTPUT").lines().find_map(|line| line.strip_prefix(output).map(str::to_owned));
        assert!(s.file(&line.expect(output)).is_file(), "{output}");
    }
    let compare = "--levels\nrc,ser\n--clients\n1\n--transactions\n5\n--warmup\n0\n--rounds\n1\n--try\n0\n-f\nsell \
        it.sql\n--setup\nshop.sql\n--require\ntps > 1e9\n";
    let inputs = [("arguments", compare), ("results", "compared")];
    let ended = steps::run(&s, &text(ACTION), &inputs);
    assert_eq!(ended[1].status.code(), Some(4), "{ended:#?}");
    assert!(s.read("compared/isobench.xml").contains("type=\"requirement\""));
    assert!(s.read("GITHUB_STEP_SUMMARY").contains("| serializable"), "{}", s.read("GITHUB_STEP_SUMMARY"));
    // A mistake is no result, and says nothing.
    let ended = steps::run(
        &s,
        &text(ACTION),
        &[("command", "probe"), ("arguments", "--tyr\n1"), ("results", "none")],
    );
    assert_ne!(ended[1].status.code(), Some(0), "{ended:#?}");
}
