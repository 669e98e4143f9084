//! Runs both programs on a case and reports their differences.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread;

use crate::case::Case;
use crate::normal::aspects;
use crate::program::{Left, Program, run};
use crate::server::Site;

/// The outcome of a case.
#[derive(Debug)]
pub enum Verdict {
    Equal,
    /// The real program doesn't behave as the case says: the case is wrong.
    NotAsSaid(String),
    /// The programs differ: the aspects, and the details.
    Different(Vec<String>, String),
}

/// Runs both on a case, side by side.
pub fn compare(site: &Site, case: &Case) -> Verdict {
    let (theirs, ours) = thread::scope(|scope| {
        let ours = scope.spawn(|| run(site, case, Program::Ours));
        (run(site, case, Program::Theirs), ours.join().expect("our run"))
    });
    if let Some(wrong) = not_as_said(&theirs, case) {
        return Verdict::NotAsSaid(wrong);
    }
    let (theirs, ours) = (aspects(&theirs, case), aspects(&ours, case));
    let (mut different, mut report) = (Vec::new(), String::new());
    for name in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let (expected, got) = (theirs.get(name), ours.get(name));
        if expected != got {
            different.push(name.clone());
            let nothing = "(nothing)".to_owned();
            let lines = difference(expected.unwrap_or(&nothing), got.unwrap_or(&nothing));
            // Writing to a string can't fail.
            let _ = writeln!(report, "  {name}:\n{lines}");
        }
    }
    if different.is_empty() { Verdict::Equal } else { Verdict::Different(different, report) }
}

/// Runs the real program alone, and returns its results.
pub fn show(site: &Site, case: &Case) -> (String, Option<String>) {
    let left = run(site, case, Program::Theirs);
    let mut text = String::new();
    for (name, mut aspect) in aspects(&left, case) {
        if name == "state" {
            aspect = difference(site.fresh(case.tables), &aspect);
        }
        let _ = writeln!(text, "  {name}:\n{aspect}");
    }
    let wrong = not_as_said(&left, case);
    (text, wrong)
}

fn not_as_said(theirs: &Left, case: &Case) -> Option<String> {
    let said = format!("{}{}", theirs.stdout, theirs.stderr);
    let missing = case.says.iter().find(|text| !said.contains(text.as_str()));
    // A program that hangs or crashes is never intended.
    let as_said = theirs.status.is_some() && (case.status.is_none() || theirs.status == case.status);
    let why = match (missing, as_said) {
        (None, true) => return None,
        (Some(text), _) => format!("pgbench doesn't say: {text}"),
        (None, false) => format!("pgbench's status is {:?}, not {:?}", theirs.status, case.status),
    };
    Some(format!("{why}\n--- stdout\n{}--- stderr\n{}", theirs.stdout, theirs.stderr))
}

/// The lines that differ, without common lines at the start and the end.
fn difference(expected: &str, got: &str) -> String {
    let (expected, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = expected.iter().zip(&got).take_while(same).count();
    let rest = expected[before..].iter().rev().zip(got[before..].iter().rev());
    let after = rest.take_while(same).count();
    let mut text = String::new();
    if before > 0 {
        let _ = writeln!(text, "      {}", expected[before - 1]);
    }
    for line in &expected[before..expected.len() - after] {
        let _ = writeln!(text, "    - {line}");
    }
    for line in &got[before..got.len() - after] {
        let _ = writeln!(text, "    + {line}");
    }
    if text.is_empty() { "    (line ends)\n".to_owned() } else { text }
}
