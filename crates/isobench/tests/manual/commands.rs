//! The commands that the manual shows use options that exist. The tables of figures and factors are those of
//! the program.
//!
//! Not here: the option lists of the reference (`src/options/reference.rs`).

use std::fmt::Write as _;
use std::process::Stdio;

use isobench_testkit::golden;

use crate::markdown::{code, files, page, root};
use crate::{factors, figures, isobench};

/// The commands, in the order of the page.
pub const COMMANDS: [&str; 16] = [
    "compare",
    "peers",
    "plans",
    "advise",
    "audit",
    "report",
    "run",
    "init",
    "workloads",
    "scripts",
    "check",
    "observe",
    "record",
    "race",
    "probe",
    "server",
];

/// The full help of a command, at a fixed width.
pub fn help(command: &str) -> String {
    let all = if matches!(command, "compare" | "audit" | "run") { "--help-all" } else { "--help" };
    let output = isobench()
        .args([command, all])
        // Decides the width if no stream is a terminal.
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .expect("isobench runs");
    assert!(output.status.success(), "{command} --help");
    let text = String::from_utf8(output.stdout).expect("help is text");
    text.lines().fold(String::new(), |mut page, line| {
        writeln!(page, "{}", line.trim_end()).expect("writes");
        page
    })
}

/// The long options that a help text lists.
pub fn long_options(help: &str) -> Vec<String> {
    let listed = help.lines().filter(|line| line.trim_start().starts_with('-'));
    listed
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        .map(|word| word.trim_end_matches(',').to_owned())
        .collect()
}

#[test]
fn tables_of_figures_and_factors_are_those_of_the_program() {
    const PAGE: &str = "reference/commands.md";
    let mut text = page(PAGE);
    golden::fill_with(&mut text, "figures", &figures::of_cells());
    golden::fill_with(&mut text, "factors", &factors::table());
    golden::expect(root().join("docs").join(PAGE), &text);
}

/// Checks every line that starts with `isobench COMMAND`, in blocks and in the text.
#[test]
fn commands_in_the_manual_use_options_that_exist() {
    let known: Vec<(&str, Vec<String>)> =
        COMMANDS.iter().map(|command| (*command, long_options(&help(command)))).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (path, text) in files() {
        let pieces = text.lines().map(str::to_owned).chain(code(&text));
        for piece in pieces.filter(|piece| piece.starts_with("isobench ")) {
            let mut words = piece.split_whitespace().skip(1);
            let first = words.next().unwrap_or_default();
            let Some((command, options)) = known.iter().find(|(command, _)| *command == first) else {
                continue;
            };
            checked += 1;
            for word in words.take_while(|word| !matches!(*word, "|" | ">" | "2>" | "&&" | "#" | "--")) {
                let name = word.split(['=', '`']).next().unwrap_or_default();
                if name.len() > 2 && name.starts_with("--") && !options.iter().any(|option| option == name) {
                    wrong.push(format!("{}: isobench {command} has no {name}", path.display()));
                }
            }
        }
    }
    assert!(checked > 20, "only {checked} commands found: the test looks in the wrong place");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
