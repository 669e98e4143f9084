//! Faults: whatever goes wrong, every command ends and reports its partial results. Each fault ×
//! each command, on a real server.
//!
//! `ISOBENCH_BLESS=1` writes the observations into `docs/reference/faults.md`; otherwise they are
//! compared with it. By day each fault meets one command, and each command some faults. Not here: the
//! faults (`faults/`).

#[path = "faults/fault.rs"]
mod fault;
#[path = "faults/stage.rs"]
mod stage;

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use isobench_testkit::{golden, night};

use self::fault::{FAULTS, Fault};
use self::stage::{COMMANDS, Command, Ended, Shared};
use crate::support::has_postgresql;

/// Number of faults tried concurrently: all that are waited out, and some more.
const AT_ONCE: usize = 24;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/faults.md");

/// The text above the rows.
const HEAD: &str = "# What happens when something breaks

Every command ends after every fault, and reports what it has. Each line is from a run of the command with the
fault (`ISOBENCH_BLESS=1 cargo test -p isobench --test cli faults`).

- *ends*: at most so long after the fault; T is the end of the time given;
- *status*: the [exit status](exit-status.md);
- *result*: the file of `--json`: *partial* is marked as incomplete, with what was measured and the reason.

| fault | command | ends | status | result |
|---|---|---|---|---|
";

#[test]
fn every_fault_ends_every_command() {
    if !has_postgresql("every_fault_ends_every_command") {
        return;
    }
    let cases = if night::all_cases() { every_case() } else { one_case_each() };
    // The longest waits start first, so that the suite doesn't end with them.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|index| !cases[*index].0.what.is_waited_out());
    let shared = Shared::start();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; cases.len()]));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (fault, command) = cases[index];
                    let ended = stage::play(fault, command, &shared);
                    found.lock().expect("no panic")[index] = Some(ended);
                }
            });
        }
    });
    let found = found.into_inner().expect("no panic");
    if night::all_cases() {
        golden::expect(PAGE, &page(&cases, &found));
        return;
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    for ((fault, command), ended) in cases.iter().zip(&found) {
        let outcome = outcome(fault, *command, ended.as_ref().expect("it was played"));
        let of_fault = page.lines().skip_while(|line| !line.starts_with(&format!("| {}:", fault.title)));
        let rows = of_fault.enumerate().take_while(|(index, line)| *index == 0 || line.starts_with("| |"));
        let rows: Vec<&str> = rows.map(|(_, line)| line).collect();
        let name = format!("`{}`", command.name());
        let commands = rows.iter().filter_map(|row| row.strip_suffix(&outcome)?.rsplit('|').next());
        let listed = commands.flat_map(|names| names.split(',')).any(|other| other.trim() == name);
        assert!(listed, "found: {name}{outcome}\non the page: {}", rows.join("\n"));
    }
}

/// Every fault with every command that has to end after it.
fn every_case() -> Vec<(&'static Fault, Command)> {
    let of = |fault: &'static Fault| COMMANDS.into_iter().map(move |command| (fault, command));
    FAULTS.iter().flat_map(of).filter(|(fault, command)| fault.ends(*command).is_some()).collect()
}

/// Every fault with one of these commands: the one that the fewest faults before it have met.
fn one_case_each() -> Vec<(&'static Fault, Command)> {
    let mut cases: Vec<(&'static Fault, Command)> = Vec::new();
    for fault in FAULTS {
        let ends = COMMANDS.into_iter().filter(|command| fault.ends(*command).is_some());
        let met = |command: &Command| cases.iter().filter(|(_, other)| other == command).count();
        let least = ends.min_by_key(met).expect("each fault has a command");
        cases.push((fault, least));
    }
    for command in COMMANDS {
        assert!(cases.iter().any(|(_, other)| *other == command), "{} meets no fault", command.name());
    }
    cases
}

/// The cells of a row after the names of the commands.
fn outcome(fault: &Fault, command: Command, ended: &Ended) -> String {
    let ends = fault.ends(command).unwrap_or_default();
    format!(" | {ends} | {} | {} |", ended.status, ended.result)
}

fn page(cases: &[(&Fault, Command)], found: &[Option<Ended>]) -> String {
    let mut page = HEAD.to_owned();
    for fault in FAULTS {
        // Commands with the same outcome share a row.
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for ((_, command), ended) in cases.iter().zip(found).filter(|((of, _), _)| of.title == fault.title) {
            let Some(ended) = ended else { continue };
            let (outcome, name) = (outcome(fault, *command, ended), format!("`{}`", command.name()));
            match rows.iter_mut().find(|(other, _)| *other == outcome) {
                Some((_, names)) => names.push(name),
                None => rows.push((outcome, vec![name])),
            }
        }
        let mut title = format!(" {}: {} ", fault.title, fault.text);
        for (outcome, names) in rows {
            page.extend(["|", &title, "| ", &names.join(", "), &outcome, "\n"]);
            " ".clone_into(&mut title);
        }
    }
    page
}
