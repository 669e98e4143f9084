//! Followers of a comparison in progress, such as a display.

use std::time::Duration;

use crate::design::{CellPlan, Design};
use crate::onlooker::SoFar;

/// Follows a comparison. It has no influence on what is measured.
pub trait Listener {
    /// Everything is ready; the first cell is next.
    fn start(&mut self, _design: &Design) {}

    /// Shows a line that stays on the screen.
    fn say(&self, _text: &str) {}

    /// Returns whether [`Listener::running`] shows the waits of sessions, which costs a query to
    /// the server.
    fn shows_waits(&self) -> bool {
        false
    }

    /// Returns whether [`Listener::running`] shows latencies, which costs the workers a little
    /// ([`isobench_runner::Watch::latencies`]).
    fn shows_latencies(&self) -> bool {
        false
    }

    /// The number of rounds has changed.
    fn set_rounds(&mut self, _rounds: u32) {}

    /// So much time is set aside for trying interleavings from now on; none once they have been tried.
    fn set_trying(&mut self, _left: Duration) {}

    /// Interleavings are tried next.
    fn trying(&mut self) {}

    /// A cell is next: its tables are made, its clients connect.
    fn preparing(&mut self, _design: &Design, _cell: &CellPlan, _round: u32) {}

    /// The tables of a cell are ready. `took` is the time it took; `again` is true if every further
    /// cell takes as long.
    fn prepared(&mut self, _took: Duration, _again: bool) {}

    /// A cell is running, or a phase of it is over. `waits` lists what its sessions are waiting for:
    /// event and number of sessions.
    fn running(&self, design: &Design, cell: &CellPlan, round: u32, so_far: &SoFar, waits: &[(String, u32)]);

    /// Cells take turns: for each what it has done so far. `waits` as above, of the one that works.
    fn in_turns(
        &self,
        design: &Design,
        cells: &[CellPlan],
        round: u32,
        so_far: &[SoFar],
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
    fn close(&self) {}
}

/// Several followers as one.
pub struct Followers<'l>(pub Vec<&'l mut dyn Listener>);

impl Listener for Followers<'_> {
    fn start(&mut self, design: &Design) {
        self.0.iter_mut().for_each(|one| one.start(design));
    }

    fn say(&self, text: &str) {
        self.0.iter().for_each(|one| one.say(text));
    }

    fn shows_waits(&self) -> bool {
        self.0.iter().any(|one| one.shows_waits())
    }

    fn shows_latencies(&self) -> bool {
        self.0.iter().any(|one| one.shows_latencies())
    }

    fn set_rounds(&mut self, rounds: u32) {
        self.0.iter_mut().for_each(|one| one.set_rounds(rounds));
    }

    fn set_trying(&mut self, left: Duration) {
        self.0.iter_mut().for_each(|one| one.set_trying(left));
    }

    fn trying(&mut self) {
        self.0.iter_mut().for_each(|one| one.trying());
    }

    fn preparing(&mut self, design: &Design, cell: &CellPlan, round: u32) {
        self.0.iter_mut().for_each(|one| one.preparing(design, cell, round));
    }

    fn prepared(&mut self, took: Duration, again: bool) {
        self.0.iter_mut().for_each(|one| one.prepared(took, again));
    }

    fn running(&self, design: &Design, cell: &CellPlan, round: u32, so_far: &SoFar, waits: &[(String, u32)]) {
        self.0.iter().for_each(|one| one.running(design, cell, round, so_far, waits));
    }

    fn in_turns(
        &self,
        design: &Design,
        cells: &[CellPlan],
        round: u32,
        so_far: &[SoFar],
        waits: &[(String, u32)],
    ) {
        self.0.iter().for_each(|one| one.in_turns(design, cells, round, so_far, waits));
    }

    fn finished(&mut self, design: &Design, cell: &CellPlan, round: u32, tps: Option<f64>, conflicts: f64) {
        self.0.iter_mut().for_each(|one| one.finished(design, cell, round, tps, conflicts));
    }

    fn close(&self) {
        self.0.iter().for_each(|one| one.close());
    }
}
