//! The printed table: a heading and one line per case.

use std::fmt::Write;

use crate::case::Case;
use crate::rounds::{ContenderSummary, Rounds};

/// The widths of the case's name, of a CPU column and of a ratio column.
const WIDTHS: (usize, usize, usize) = (34, 20, 20);

/// The indices of the contenders in a round.
#[derive(Clone, Copy, Debug)]
pub struct ContenderIndices {
    /// isobench.
    pub isobench: usize,
    /// pgbench, the reference.
    pub pgbench: usize,
    /// The raw loop, if it ran.
    pub raw: Option<usize>,
}

/// The two lines above the table.
pub fn heading() -> String {
    let (name, cpu, ratio) = WIDTHS;
    let (cpus, ratios) = (3 * cpu + 2, 2 * ratio + 1);
    let groups = format!(
        "{:name$} {:cpus$} {:ratios$} {}",
        "",
        "client CPU, µs/transaction: sum (user+system)",
        "times less CPU than pgbench",
        "tps, times pgbench's"
    );
    let columns = format!(
        "{:name$} {:cpu$} {:cpu$} {:cpu$} {:ratio$} {:ratio$} {:ratio$} raw loop",
        "case", "isobench", "pgbench", "raw loop", "isobench", "raw loop", "isobench"
    );
    format!("{groups}\n{columns}")
}

/// A warning above the table if the machine is busy; `load` is the text of `/proc/loadavg`.
pub fn load_warning(load: &str) -> Option<String> {
    let busy: f64 = load.split(' ').next()?.parse().ok()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (busy > cores as f64 / 4.0).then(|| {
        format!("WARNING: load average {busy} on {cores} cores: the machine is busy, so these ratios are mostly noise")
    })
}

/// The line for a case.
pub fn line(case: Case, rounds: &Rounds, indices: ContenderIndices) -> String {
    let (name, cpu, ratio) = WIDTHS;
    let summary = |place: usize| rounds.summary(place, indices.pgbench);
    let isobench = summary(indices.isobench);
    let raw = indices.raw.and_then(summary);
    let mut line = format!("{case:name$}");
    for one in [isobench, summary(indices.pgbench), raw] {
        let text = one.map_or("-".to_string(), cpu_text);
        let _ = write!(line, " {text:cpu$}");
    }
    for part in [|one: ContenderSummary| one.less_cpu, |one: ContenderSummary| one.tps] {
        for one in [isobench, raw] {
            let text = one.and_then(part).map_or("-".to_string(), |ratio| ratio.to_string());
            let _ = write!(line, " {text:ratio$}");
        }
    }
    line.trim_end().to_string()
}

fn cpu_text(summary: ContenderSummary) -> String {
    format!("{:.2} ({:.2}+{:.2})", summary.cpu, summary.user, summary.system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_named_above_the_table() {
        assert!(load_warning("100000.00 1 1 1/1 1").unwrap().contains("load average 100000"));
        assert_eq!(load_warning("0.00 9 9 1/1 1"), None);
        assert_eq!(load_warning(""), None);
    }
}
