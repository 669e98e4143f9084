//! The templates for continuous integration: they are valid, and name options that exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::isobench;
use crate::support::scene::Scene;
use crate::support::skip;

/// A template.
fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ci").join(name)
}

fn copy(scene: &Scene, name: &str, to: &str) {
    scene.write(to, &fs::read_to_string(template(name)).expect("the template"));
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
        ("vendor.github-actions", "github-action/action.yml"),
        ("vendor.github-workflows", "github-action/workflow.yml"),
        ("vendor.gitlab-ci", "gitlab-ci.yml"),
    ] {
        let file = template(name);
        let arguments = ["--builtin-schema", schema, file.to_str().expect("UTF-8")];
        content("templates_have_the_shape_that_services_expect", &scene, "check-jsonschema", &arguments);
    }
}

#[test]
fn the_workflow_uses_the_action_as_it_is() {
    let scene = Scene::new();
    copy(&scene, "github-action/action.yml", ".github/actions/isobench/action.yml");
    copy(&scene, "github-action/workflow.yml", ".github/workflows/isobench.yml");
    // The checker looks for the root of a repository.
    fs::create_dir(scene.file(".git")).expect("a folder");
    content("the_workflow_uses_the_action_as_it_is", &scene, "actionlint", &[]);
}

/// The words after `isobench` in the templates' commands.
#[test]
fn templates_run_isobench_as_it_is() {
    for name in ["github-action/action.yml", "gitlab-ci.yml"] {
        let text = fs::read_to_string(template(name)).expect("the template");
        let lines =
            text.lines().filter_map(|line| line.split_once("isobench\" ").or(line.split_once(" isobench ")));
        let commands: Vec<&str> =
            lines.map(|(_, words)| words).filter(|words| words.contains("--")).collect();
        assert!(commands.len() >= 3, "{name}: {commands:?}");
        for command in commands {
            let words: Vec<&str> = command.split_whitespace().collect();
            let all = if words[0] == "compare" { "--help-all" } else { "--help" };
            let help = Command::new(isobench()).args([words[0], all]).output().expect("help");
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{name}: isobench {} has no {option}", words[0]);
            }
        }
    }
}
