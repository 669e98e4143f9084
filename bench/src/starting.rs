//! The time from the start of `isobench compare` to its first measured transaction, with the
//! server's template ready: seen from outside, so an upper bound.
//!
//! That is the time of the line about the first cell, less what the result says was measured before
//! it: in its round, or in those of all cells if they take turns. So it includes connecting, the
//! warm-ups, and the check of the histories.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isobench_result::{Document, Round};

use crate::client::{ClientError, shown};

/// A start.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Until the first measured transaction, at most.
    pub elapsed: Duration,
    /// Of that, the warm-up.
    pub warmup: Duration,
}

/// Runs a short comparison of the default workload.
///
/// # Errors
/// isobench can't be started, fails, or writes no result.
pub fn run(isobench: &Path, server_bin: Option<&Path>, folder: &Path) -> Result<Start, ClientError> {
    let result = folder.join("result.json");
    let mut command = Command::new(isobench);
    command.args(["compare", "--time", "500ms", "--rounds", "1", "--json"]).arg(&result);
    command.args(server_bin.map(|bin| format!("--server-bin={}", bin.display())));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let system = |source| ClientError::System { program: isobench.display().to_string(), source };
    let began = Instant::now();
    let mut child = command.spawn().map_err(system)?;
    let (mut first, mut last) = (None, String::new());
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        last = line.map_err(system)?;
        if last.starts_with("[1/") {
            first.get_or_insert_with(|| began.elapsed());
        }
    }
    let status = child.wait().map_err(system)?;
    let failed = |output: String| ClientError::Failed { command: shown(&command), status, output };
    let first = first.filter(|_| status.success()).ok_or_else(|| failed(last))?;
    let text = std::fs::read(&result).map_err(system)?;
    let document = Document::from_json(text).map_err(|error| failed(error.to_string()))?;
    let mut rounds: Vec<&Round> = document.cells.iter().flat_map(|cell| &cell.rounds).collect();
    rounds.sort_by_key(|round| round.order);
    // In turns, all cells are measured before the first line; otherwise the first one is.
    let before = if rounds.iter().all(|round| round.turns.is_some()) { rounds.len() } else { 1 };
    rounds.truncate(before);
    if rounds.is_empty() { Err(failed("nothing measured".to_owned())) } else { Ok(start(first, &rounds)) }
}

/// The start of a comparison that measured these rounds before its first line.
fn start(first: Duration, rounds: &[&Round]) -> Start {
    let sum = |seconds: fn(&Round) -> f64| {
        let all = rounds.iter().map(|round| seconds(round)).sum();
        Duration::try_from_secs_f64(all).unwrap_or_default()
    };
    let warmup = sum(|round| round.warmup.map_or(0.0, |warmup| warmup.seconds));
    Start { elapsed: first.saturating_sub(sum(|round| round.seconds)), warmup }
}
