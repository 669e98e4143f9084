//! Followers of a comparison in progress, such as a display.

use std::time::Duration;

use isobench_runner::RunProgress;

use crate::design::{CellPlan, Design};

/// Follows a comparison. It has no influence on what is measured.
pub trait Listener {
    /// Everything is ready; the first cell is next.
    fn start(&mut self, design: &Design);

    /// Shows a line that stays on the screen.
    fn say(&self, text: &str);

    /// Returns whether [`Listener::running`] shows the waits of sessions, which costs a query to
    /// the server.
    fn shows_waits(&self) -> bool;

    /// The number of rounds has changed.
    fn set_rounds(&mut self, rounds: u32);

    /// A cell is next: its tables are made, its clients connect.
    fn preparing(&mut self, design: &Design, cell: &CellPlan, round: u32);

    /// The tables of a cell are ready. `took` is the time it took; `again` is true if every further
    /// cell takes as long.
    fn prepared(&mut self, took: Duration, again: bool);

    /// A cell is running. `waits` lists what its sessions are waiting for: event and number of
    /// sessions.
    fn running(
        &self,
        design: &Design,
        cell: &CellPlan,
        round: u32,
        elapsed: Duration,
        progress: &RunProgress,
        waits: &[(String, u32)],
    );

    /// Cells take turns: for each the measured time so far and its progress. `waits` as above, of the
    /// one that works.
    fn in_turns(
        &self,
        design: &Design,
        cells: &[CellPlan],
        round: u32,
        so_far: &[(Duration, RunProgress)],
        waits: &[(String, u32)],
    );

    /// A cell has been measured.
    fn finished(
        &mut self,
        design: &Design,
        cell: &CellPlan,
        round: u32,
        tps: Option<f64>,
        conflict_ratio: f64,
    );

    /// The comparison is over.
    fn close(&self);
}
