//! Cells that take turns. All of them have their tables and keep their sessions; one works for a
//! fraction of a second while the others are idle. So what changes on the machine meanwhile
//! changes for all.
//!
//! Not here: one cell's measurement (`measurement.rs`), and which cells take turns
//! (`comparison/fair.rs`).

use std::time::Duration;

use isobench_result::Turns;
use isobench_runner::{Job, RunWorkload, StopCondition, Urgency};

use crate::cell::{CellMeasurer, Entrant, MeasuredCell, WATCH_EVERY};
use crate::design::CellPlan;
use crate::failure::{Failure, Outcome};
use crate::measurement::{Measured, Measurement, Started};
use crate::messages::Messages;
use crate::onlooker::{Onlooker, SoFar};
use crate::tables::{Ready, Tables};

/// A slice lasts at least this many times as long as clients wait for the last one at its end, so
/// that the edges of slices are less than a hundredth of them.
const EDGES: u32 = 100;

/// A step of a block.
pub enum BlockStep<'s> {
    /// The tables of this cell are made next.
    Preparing(usize),
    /// The tables are ready.
    Prepared(&'s Ready),
    /// This cell works: what it has done in all its slices.
    Working(usize, &'s SoFar),
}

/// The cells of a block, in which all have a place each.
pub struct Block<'b> {
    /// The cells.
    pub cells: &'b [CellPlan],
    /// The number of the round.
    pub number: u32,
    /// The measured time of each cell.
    pub time: Duration,
    /// The shortest slice.
    pub slice: Duration,
    /// Whoever looks on wants latencies.
    pub latencies: bool,
    /// The orders of the cells in the turns, repeated as often as needed.
    pub orders: &'b [Vec<usize>],
}

/// What became of the cells of a block, in their order.
pub struct Played {
    /// The rounds; `None` for a cell that wasn't measured because the user asked to stop.
    pub measured: Vec<Option<Outcome<MeasuredCell>>>,
    /// Why cells were measured in one piece, if they were.
    pub in_one_piece: Option<String>,
}

/// A cell whose tables are ready, before its clients are connected.
struct ReadyCell<'e> {
    measurement: Measurement<'e>,
    job: Job,
    messages: Messages<'e>,
}

/// For each cell of a block the reason why it can't be measured, if there is one.
struct Failures(Vec<Option<Failure>>);

impl Failures {
    /// Returns what a step gave, or keeps why it failed.
    fn keep<T>(&mut self, place: usize, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(failure) => {
                self.0[place] = Some(failure);
                None
            }
        }
    }
}

impl CellMeasurer<'_> {
    /// Measures cells in turns.
    pub fn measure_block(&mut self, block: &Block<'_>, follow: &mut dyn FnMut(BlockStep<'_>)) -> Played {
        let mut failures = Failures(block.cells.iter().map(|_| None).collect());
        let mut rooms = vec![0; self.targets.len()];
        let mut entrants = Vec::new();
        let mut workloads = Vec::new();
        for (place, cell) in block.cells.iter().enumerate() {
            let alone = matches!(self.design.works[cell.work].tables, Tables::Found);
            rooms[cell.server] += usize::from(!alone);
            let room = if alone { 0 } else { rooms[cell.server] };
            let entered = (!self.is_stopped()).then(|| {
                follow(BlockStep::Preparing(place));
                let prepared = self.prepare(cell, room)?;
                follow(BlockStep::Prepared(&prepared.ready));
                self.enter(cell, block.number, prepared)
            });
            let entered = entered.and_then(|entered| failures.keep(place, entered));
            let (entrant, workload) = entered.unzip();
            entrants.push(entrant);
            workloads.push(workload);
        }
        self.play(block, entrants, workloads, failures, follow)
    }

    fn is_stopped(&self) -> bool {
        self.control.urgency() > Urgency::None
    }

    /// What a cell's clients are to do.
    ///
    /// # Errors
    /// The user's conditions can't be read, or the history's file can't be made.
    fn ready_cell<'e>(
        &'e self,
        cell: &CellPlan,
        place: usize,
        entrant: &'e Entrant,
        workload: RunWorkload,
    ) -> Outcome<ReadyCell<'e>> {
        let measurement = self.measurement(entrant, place)?;
        let job = self.measured_job(&measurement, cell, workload)?;
        Ok(ReadyCell { measurement, job, messages: Messages::kept(self.say) })
    }

    /// Measures the cells whose tables are ready.
    fn play(
        &self,
        block: &Block<'_>,
        entrants: Vec<Option<Entrant>>,
        workloads: Vec<Option<RunWorkload>>,
        mut failures: Failures,
        follow: &mut dyn FnMut(BlockStep<'_>),
    ) -> Played {
        let ready: Vec<Option<ReadyCell<'_>>> = entrants
            .iter()
            .zip(workloads)
            .enumerate()
            .map(|(place, (entrant, workload))| {
                let ready = self.ready_cell(&block.cells[place], place, entrant.as_ref()?, workload?);
                failures.keep(place, ready)
            })
            .collect();
        let mut started: Vec<Option<Started<'_>>> = Vec::new();
        for (place, ready) in ready.iter().enumerate() {
            let ready = ready.as_ref().filter(|_| !self.is_stopped());
            started.push(ready.and_then(|ReadyCell { measurement, job, messages }| {
                let show = &mut |so_far: &SoFar| follow(BlockStep::Working(place, so_far));
                let mut onlooker = Onlooker { every: WATCH_EVERY, latencies: block.latencies, show };
                let started = measurement.start(job, messages, &mut onlooker);
                failures.keep(place, started.inspect(Started::rest))
            }));
        }
        let slices = Slices::for_block(block, &started);
        self.take_turns(block, &slices, &mut started, &mut failures, follow);
        let ended: Vec<Option<Measured>> = started
            .into_iter()
            .enumerate()
            .map(|(place, started)| {
                // One that never worked has nothing to report.
                let started = started.filter(|started| started.so_far().is_some())?;
                started.wake();
                let measured = failures.keep(place, started.end(block.number))?;
                follow(BlockStep::Working(place, &measured.so_far()));
                Some(measured)
            })
            .collect();
        let judged: Vec<Option<(Measured, Option<String>)>> = ready
            .into_iter()
            .zip(ended)
            .map(|(ready, measured)| {
                let (ReadyCell { measurement, job, .. }, mut measured) = ready.zip(measured)?;
                slices.note(&mut measured);
                let judgement = measurement.judge(job, None, &mut measured);
                Some((measured, judgement))
            })
            .collect();
        let measured =
            entrants.into_iter().zip(judged).zip(failures.0).map(|((entrant, judged), failure)| {
                let measured = entrant.zip(judged);
                let measured =
                    measured.map(|(entrant, (measured, text))| Ok(self.conclude(entrant, measured, text)));
                failure.map(Err).or(measured)
            });
        Played { measured: measured.collect(), in_one_piece: slices.in_one_piece }
    }

    /// Lets all cells work, in turns. A cell with a client that failed takes no further turn.
    fn take_turns(
        &self,
        block: &Block<'_>,
        turns: &Slices,
        started: &mut [Option<Started<'_>>],
        failures: &mut Failures,
        follow: &mut dyn FnMut(BlockStep<'_>),
    ) {
        for turn in 0..turns.count {
            for &place in &block.orders[turn as usize % block.orders.len()] {
                let failed = |cell: &&mut Started<'_>| cell.so_far().is_some_and(|run| run.aborted > 0);
                let cell = started[place].as_mut().filter(|cell| !self.is_stopped() && !failed(cell));
                let Some(cell) = cell else { continue };
                let show = &mut |so_far: &SoFar| follow(BlockStep::Working(place, so_far));
                let mut onlooker = Onlooker { every: WATCH_EVERY, latencies: block.latencies, show };
                let worked = cell.work(StopCondition::Turn(turns.length), &mut onlooker);
                if failures.keep(place, worked).is_none() {
                    started[place] = None;
                }
            }
        }
    }
}

/// The slices of the cells of a block.
struct Slices {
    /// Number of slices of each cell.
    count: u32,
    length: Duration,
    in_one_piece: Option<String>,
}

impl Slices {
    /// Chooses the length of slices by what their ends cost, as seen in the warm-up.
    fn for_block(block: &Block<'_>, started: &[Option<Started<'_>>]) -> Slices {
        let idle = started.iter().flatten().filter_map(Started::idle_in_warmup).max();
        Slices::of(block.time, block.slice, idle.unwrap_or_default())
    }

    /// Slices of at least this length that add up to a time. `idle` is the time for which clients
    /// wait for the last one at the end of a slice, on average.
    fn of(time: Duration, slice: Duration, idle: Duration) -> Slices {
        let wanted = slice.max(idle * EDGES);
        let most = (time.as_secs_f64() / wanted.as_secs_f64()).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let count = (most as u32).max(1);
        let in_one_piece = (count == 1 && wanted > slice).then(|| {
            format!(
                "cells were measured in one piece each, because at the end of a slice clients waited {:.0} ms for the \
                 last transaction, which would be more than a hundredth of slices; a longer --time has longer ones",
                idle.as_secs_f64() * 1e3
            )
        });
        Slices { count, length: time / count, in_one_piece }
    }

    /// Notes in a round how it was measured. One that lacks slices isn't complete.
    fn note(&self, measured: &mut Measured) {
        let run = &measured.run;
        measured.round.complete &= run.turns == self.count;
        let elapsed = run.elapsed.as_secs_f64();
        measured.round.turns = Some(Turns {
            count: run.turns,
            length_s: self.length.as_secs_f64(),
            idle_share: if elapsed > 0.0 { run.idle.as_secs_f64() / elapsed } else { 0.0 },
        });
    }
}
