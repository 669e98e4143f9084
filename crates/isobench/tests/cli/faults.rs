//! Faults: whatever goes wrong, every command ends and reports its partial results. Each fault ×
//! each command, on a real server.
//!
//! `ISOBENCH_BLESS=1` writes the observations into `docs/reference/faults.md`; otherwise they are
//! compared with it. Not here: the faults (`faults/`).

#[path = "faults/fault.rs"]
mod fault;
#[path = "faults/stage.rs"]
mod stage;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use isobench_report::wrap;
use isobench_testkit::golden;

use self::fault::{FAULTS, Fault};
use self::stage::{COMMANDS, Command, Ended, Shared};
use crate::support::has_postgresql;

/// Number of faults tried concurrently: all that are waited out, and some more.
const AT_ONCE: usize = 24;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/faults.md");

/// Columns of the page's prose.
const WIDTH: usize = 100;

/// The text above the tables.
const HEAD: &str = "# What happens when something breaks

Generated from the tests (`ISOBENCH_BLESS=1 cargo test -p isobench --test cli faults`), each line
from a run of the command into which the fault was brought. *Ends* is how long after the fault the
command takes at most; *status* is the [exit status](exit-status.md); *result* is what the file that
`--json` names holds then.
";

#[test]
fn every_fault_ends_every_command() {
    if !has_postgresql("every_fault_ends_every_command") {
        return;
    }
    let cases: Vec<(&Fault, Command)> = FAULTS
        .iter()
        .flat_map(|fault| COMMANDS.into_iter().map(move |command| (fault, command)))
        .filter(|(fault, command)| fault.ends(*command).is_some())
        .collect();
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
    golden::expect(PAGE, &page(&cases, &found));
}

fn page(cases: &[(&Fault, Command)], found: &[Option<Ended>]) -> String {
    let mut page = HEAD.to_owned();
    for fault in FAULTS {
        // Writing to a String can't fail.
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| command | ends | status | result |\n|---|---|---|---|\n",
            fault.title,
            wrap(fault.text, WIDTH, 0).join("\n")
        );
        for ((_, command), ended) in cases.iter().zip(found).filter(|((of, _), _)| of.title == fault.title) {
            let Some(ended) = ended else { continue };
            let ends = fault.ends(*command).unwrap_or_default();
            let _ = writeln!(page, "| `{}` | {ends} | {} | {} |", command.name(), ended.status, ended.result);
        }
    }
    page
}
