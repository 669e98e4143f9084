//! The cost of a client's options: log, report per command, progress, retries.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::case::{Case, ServerKind};
use crate::client::{ClientError, run};
use crate::contender::{Address, Pair};
use crate::ratio::Ratio;
use crate::raw_loop::requests::{Mode, Workload};

/// The time allowed for a client beyond its run time.
const GRACE: Duration = Duration::from_mins(1);

/// The widths of a column of names, and of one of numbers.
const WIDTHS: (usize, usize) = (26, 24);

/// The case to which the options are added.
const CASE: Case =
    Case { server: ServerKind::NullUnix, workload: Workload::SelectOnly, mode: Mode::Prepared, clients: 8 };

/// Options whose cost is measured, with their names in the table. `LOG` represents a log file
/// prefix.
const FEATURES: [(&str, &[&str]); 5] = [
    ("-l", &["-l", "--log-prefix=LOG"]),
    ("-r", &["-r"]),
    ("-P 1", &["-P", "1"]),
    ("--max-tries=0 -L 1000", &["--max-tries=0", "-L", "1000"]),
    ("all of these", &["-l", "--log-prefix=LOG", "-r", "-P", "1", "--max-tries=0", "-L", "1000"]),
];

/// The table of the cost of options: client CPU per transaction with each of them, divided by that
/// without.
///
/// # Errors
/// If a client fails.
pub fn table(
    pair: Pair<'_>,
    address: &Address,
    folder: &Path,
    rounds: u32,
    time: Duration,
) -> Result<String, ClientError> {
    let (name, wide) = WIDTHS;
    let mut table =
        format!("{:name$} {:wide$} {:wide$}\n", "client CPU, with/without", "isobench", "pgbench");
    for (feature, options) in FEATURES {
        let _ = write!(table, "{feature:name$}");
        for (_, contender) in pair.named() {
            let mut pairs = Vec::new();
            for _ in 0..rounds {
                let mut plain = contender.command(CASE, address, time);
                let mut with = contender.command(CASE, address, time);
                add(&mut with, options, folder);
                let (plain, with) = (run(&mut plain, time + GRACE)?, run(&mut with, time + GRACE)?);
                pairs.push((with.cpu(), plain.cpu()));
                clear(folder);
            }
            let ratio = Ratio::of(pairs).map_or_else(String::new, |ratio| ratio.to_string());
            let _ = write!(table, " {ratio:wide$}");
        }
        table.push('\n');
    }
    Ok(table)
}

fn add(command: &mut Command, options: &[&str], folder: &Path) {
    let place = folder.join("log").to_string_lossy().into_owned();
    command.args(options.iter().map(|option| option.replace("LOG", &place)));
}

/// Removes the logs of a run, which are large.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Any remaining files are removed with the folder.
        let _ = std::fs::remove_file(entry.path());
    }
}
