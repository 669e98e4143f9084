//! Progress of a comparison on standard error: a live line on a terminal, one plain line for each cell elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use isobench_runner::Progress;

use crate::plan::{CellPlan, Plan};

/// Shows what is running and how long the rest takes.
pub struct Display {
    bar: Option<ProgressBar>,
    live: bool,
    cells: u32,
    cells_of_round: u32,
    done: u32,
    began: Instant,
    expected: Duration,
}

impl Display {
    /// Begins the display of a plan. `live` shows more of the running cell, on a terminal.
    pub fn new(plan: &Plan, live: bool) -> Display {
        let cells_of_round = u32::try_from(plan.cells().len()).unwrap_or(u32::MAX);
        let cells = cells_of_round.saturating_mul(plan.rounds);
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(u64::from(cells));
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let live = live && bar.is_some();
        Display {
            bar,
            live,
            cells,
            cells_of_round,
            done: 0,
            began: Instant::now(),
            expected: plan.time + plan.warmup,
        }
    }

    /// Whether the running cell is shown in all its detail.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// There are to be so many rounds.
    pub fn set_rounds(&mut self, rounds: u32) {
        self.cells = self.cells_of_round.saturating_mul(rounds);
        if let Some(bar) = &self.bar {
            bar.set_length(u64::from(self.cells));
        }
    }

    /// Shows the cell that is running. `waits` says what its sessions are waiting for: event and number of sessions.
    pub fn running(
        &self,
        plan: &Plan,
        cell: &CellPlan,
        round: u32,
        elapsed: Duration,
        progress: &Progress,
        waits: &[(String, u32)],
    ) {
        let Some(bar) = &self.bar else { return };
        let waits: String =
            waits.iter().take(3).map(|(event, sessions)| format!(", {sessions} {event}")).collect();
        let seconds = elapsed.as_secs_f64().max(1e-3);
        bar.set_message(format!(
            "{}: {:.0} tps, {:.0} conflicts/s{waits}, {} left",
            title(plan, cell, round),
            progress.committed as f64 / seconds,
            progress.conflicts as f64 / seconds,
            spell(self.left()),
        ));
    }

    /// Shows the result of a cell.
    pub fn finished(
        &mut self,
        plan: &Plan,
        cell: &CellPlan,
        round: u32,
        tps: Option<f64>,
        conflict_ratio: f64,
    ) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(u64::from(self.done));
            return;
        }
        eprintln!(
            "[{}/{}] {}: {:.0} tps, {:.0} % of attempts conflicted ({} left)",
            self.done,
            self.cells,
            title(plan, cell, round),
            tps.unwrap_or(0.0),
            conflict_ratio * 100.0,
            spell(self.left()),
        );
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.println(text);
        } else {
            eprintln!("{text}");
        }
    }

    /// Removes the live line.
    pub fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Time left, from what the cells have taken so far.
    fn left(&self) -> Duration {
        let rest = self.cells.saturating_sub(self.done);
        let each = if self.done == 0 { self.expected } else { self.began.elapsed() / self.done };
        each * rest
    }
}

fn title(plan: &Plan, cell: &CellPlan, round: u32) -> String {
    let backoff = if plan.backoff.len() > 1 { format!(", backoff {}", cell.backoff) } else { String::new() };
    format!("round {round}/{}, {}, {} clients{backoff}", plan.rounds, cell.level, cell.clients)
}

fn spell(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}
