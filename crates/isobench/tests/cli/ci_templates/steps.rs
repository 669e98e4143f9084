//! The shell steps of the composite action, carried out as a runner does.

use std::collections::BTreeMap;
use std::fs;

use crate::support::program::{Finished, Running, isobench};
use crate::support::scene::Scene;

/// A step with a script: its environment, as it is written, and the script.
#[derive(Debug, Default)]
struct Step {
    environment: BTreeMap<String, String>,
    script: String,
}

/// The steps of an action that have a script, in their order. The action has block scripts only.
fn steps(action: &str) -> Vec<Step> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = action.lines().skip_while(|line| line.trim() != "steps:").peekable();
    while let Some(line) = lines.next() {
        let within = depth(line);
        let mut block = || -> Vec<&str> {
            let deeper = |line: &&str| line.trim().is_empty() || depth(line) > within;
            std::iter::from_fn(|| lines.next_if(|line| deeper(line))).collect()
        };
        match line.trim() {
            text if text.starts_with("- name:") => steps.push(Step::default()),
            "env:" => {
                let pairs = block().into_iter().filter_map(|line| line.trim().split_once(": "));
                let step = steps.last_mut().expect("a step");
                step.environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            }
            "run: |" => {
                let script = block();
                let margin = script.first().map_or(0, |line| depth(line));
                let lines = script.iter().map(|line| line.get(margin..).unwrap_or_default());
                steps.last_mut().expect("a step").script = lines.collect::<Vec<_>>().join("\n");
            }
            other => assert!(!other.starts_with("run:"), "a script of another form: {other}"),
        }
    }
    steps.retain(|step| !step.script.is_empty());
    steps
}

/// Carries out the steps in a scene, and returns how each ended. A step after one that failed is carried out,
/// too, as `!cancelled()` has it.
pub(super) fn run(s: &Scene, action: &str, inputs: &[(&str, &str)]) -> Vec<Finished> {
    let program = isobench();
    let defaults =
        [("command", "compare"), ("version", ""), ("package", ""), ("results", "isobench-results/ci")];
    let value = |written: &str| {
        let name = written.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}"));
        let name = name.unwrap_or_else(|| panic!("{written} is no input"));
        let given = inputs.iter().chain(&defaults).find(|(input, _)| *input == name);
        if name == "path" { program.as_str() } else { given.unwrap_or_else(|| panic!("no {name}")).1 }
    };
    let files = ["GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"];
    for name in files {
        s.write(name, "");
    }
    let steps = steps(action);
    assert_eq!(steps.len(), 3, "{steps:#?}");
    let mut ended = Vec::new();
    for step in steps {
        s.write("step.sh", &step.script);
        let mut command =
            s.program("bash".as_ref(), &["--noprofile", "--norc", "-eo", "pipefail", "step.sh"]);
        command.env("RUNNER_TEMP", s.file("runner"));
        command.envs(files.map(|name| (name, s.file(name))));
        command.envs(step.environment.iter().map(|(name, written)| (name, value(written))));
        let added = s.read("GITHUB_PATH");
        let path = std::env::var("PATH").unwrap_or_default();
        let all = added.lines().map(str::to_owned).chain([path]).collect::<Vec<_>>().join(":");
        command.env("PATH", all);
        ended.push(Running::start(&mut command).finish());
    }
    fs::remove_file(s.file("step.sh")).expect("it was there");
    ended
}
