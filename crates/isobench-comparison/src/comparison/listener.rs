//! Those who follow a comparison while it is measured, such as a display.

use std::time::Duration;

use isobench_runner::RunProgress;

use crate::design::{CellPlan, Design};

/// Follows a comparison. Nothing that it does changes what is measured.
pub trait Listener {
    /// Everything is ready; the first cell is next.
    fn start(&mut self, design: &Design);

    /// A line for people that is worth keeping.
    fn say(&self, text: &str);

    /// True if [`Listener::running`] shows what sessions wait for. Finding that out takes a look at
    /// the server.
    fn shows_waits(&self) -> bool;

    /// The number of rounds has changed.
    fn set_rounds(&mut self, rounds: u32);

    /// A cell is next: its tables are made, its clients connect.
    fn preparing(&mut self, design: &Design, cell: &CellPlan, round: u32);

    /// Tables took that long, and take it again before each further cell or don't.
    fn prepared(&mut self, took: Duration, again: bool);

    /// A cell is running. `waits` says what its sessions are waiting for: event and number of
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

    /// A cell has been measured.
    fn finished(
        &mut self,
        design: &Design,
        cell: &CellPlan,
        round: u32,
        tps: Option<f64>,
        conflict_ratio: f64,
    );

    /// Nothing more is measured.
    fn close(&self);
}
