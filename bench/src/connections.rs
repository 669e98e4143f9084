//! The cost of connections: the memory for each of many, and the time to open them all.

use std::fmt::Write as _;
use std::time::Duration;

use crate::case::{Case, ServerKind};
use crate::client::{ClientError, Sample, run};
use crate::contender::{Address, Contender, Pair};
use crate::ratio::{Ratio, median};
use crate::raw_loop::requests::{Mode, Workload};

/// The time allowed for a client beyond its run time.
const GRACE: Duration = Duration::from_mins(2);

/// The widths of a column of names, and of one of numbers.
const WIDTHS: (usize, usize) = (26, 24);

/// The table of the cost of a number of connections: KiB of memory for each (peak resident memory
/// minus that of a run with one client), and the connection time in the summary.
///
/// # Errors
/// If a client fails.
pub fn table(
    pair: Pair<'_>,
    address: &Address,
    count: u16,
    rounds: u32,
    time: Duration,
) -> Result<String, ClientError> {
    let measure = |contender: &Contender, clients: u16| {
        run(&mut contender.command(case(clients), address, time), time + GRACE)
    };
    let mut samples: [Vec<(Sample, Sample)>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((_, contender), samples) in pair.named().into_iter().zip(&mut samples) {
            samples.push((measure(contender, 1)?, measure(contender, count)?));
        }
    }
    let (name, wide) = WIDTHS;
    let mut table = format!(
        "{:name$} {:wide$} {:wide$}",
        format!("{count} connections"),
        "KiB for each",
        "ms to open all"
    );
    table.push_str(" times pgbench's\n");
    for ((who, _), own) in pair.named().into_iter().zip(&samples) {
        let memory = own.iter().map(|(one, many)| {
            many.memory.saturating_sub(one.memory) as f64 / 1024.0 / f64::from(count.saturating_sub(1).max(1))
        });
        let opening = |(_, many): &(Sample, Sample)| many.connecting.as_secs_f64() * 1e3;
        let ratio = Ratio::of(own.iter().map(opening).zip(samples[1].iter().map(opening)));
        let ratio = ratio.map_or_else(String::new, |ratio| ratio.to_string());
        let (memory, opening) = (median(memory), median(own.iter().map(opening)));
        let _ = writeln!(table, "{who:name$} {memory:<wide$.2} {opening:<wide$.1} {ratio}");
    }
    Ok(table)
}

fn case(clients: u16) -> Case {
    Case { server: ServerKind::NullUnix, workload: Workload::SelectOnly, mode: Mode::Simple, clients }
}
