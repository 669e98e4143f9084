//! The cost of recording the reads and writes of transactions for the isolation checker.
//!
//! The runner's example `record` runs a script of four observed operations with and without
//! recording, alternately. It is a separate program, because `isobench` also checks its recordings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::client::{ClientError, run};
use crate::contender::Address;
use crate::ratio::{Ratio, median};

/// The time allowed for a run beyond its run time.
const GRACE: Duration = Duration::from_mins(1);

/// A script that reads and writes two registers.
const SCRIPT: &str = include_str!("recording/registers.sql");

/// Creates the registers.
const TABLES: &str = include_str!("recording/tables.sql");

/// The query modes and numbers of clients.
const CASES: [(&str, u16); 4] = [("simple", 8), ("prepared", 1), ("prepared", 8), ("prepared", 64)];

/// The parameters of the comparison.
#[derive(Clone, Debug)]
pub struct RecordingPlan {
    /// The example `record` of the runner.
    pub program: PathBuf,
    /// The number of rounds, each of which runs everything once.
    pub rounds: u32,
    /// The duration of each run.
    pub time: Duration,
}

/// The lines of a table for one server: CPU and tps with recording divided by those without. `fill`
/// is true if the server has tables to fill.
///
/// # Errors
/// If a run fails, or its files can't be written.
pub fn lines(
    plan: &RecordingPlan,
    name: &str,
    address: &Address,
    fill: bool,
    folder: &Path,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let (script, tables) = (folder.join("registers.sql"), folder.join("tables.sql"));
    std::fs::write(&script, SCRIPT)?;
    std::fs::write(&tables, TABLES)?;
    let mut text = String::new();
    for (mode, clients) in CASES {
        let command = |record: bool| {
            let mut command = Command::new(&plan.program);
            command.args([&address.host, &address.port.to_string(), &address.user, &address.database]);
            command.args([&clients.to_string(), &plan.time.as_secs().to_string(), mode]);
            command.arg(&script);
            command.args(fill.then_some(&tables)).args(record.then_some("--record"));
            command
        };
        let mut samples = Vec::new();
        for round in 0..plan.rounds {
            // The order alternates, so that a server that becomes slower affects both equally.
            let sample = |record| -> Result<_, ClientError> { run(&mut command(record), plan.time + GRACE) };
            let (with, without);
            if round % 2 == 0 {
                without = sample(false)?;
                with = sample(true)?;
            } else {
                with = sample(true)?;
                without = sample(false)?;
            }
            samples.push((with, without));
        }
        let ratio = |value: fn(&crate::client::Sample) -> f64| {
            Ratio::of(samples.iter().map(|(with, without)| (value(with), value(without))))
                .map_or_else(String::new, |ratio| ratio.to_string())
        };
        let plain = median(samples.iter().map(|(_, without)| without.cpu()));
        let _ = writeln!(
            text,
            "{:24} {:20} {:20} {:20} {plain:.2} µs",
            format!("{name}/{mode}/{clients}"),
            ratio(crate::client::Sample::cpu),
            ratio(crate::client::Sample::user_cpu),
            ratio(|sample| sample.tps),
        );
    }
    Ok(text)
}

/// The heading of the table.
pub fn heading() -> String {
    format!(
        "{:24} {:20} {:20} {:20} {}",
        "with/without recording", "client CPU", "of it user", "tps", "CPU without"
    )
}
