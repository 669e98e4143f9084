//! Cells that are measured together: in turns, or one in one piece. In turns all of them have their
//! tables and keep their sessions; one works for a fraction of a second while the others are idle. So
//! a change on the machine in that time affects all.
//!
//! Not here: what a cell's measurement is (`cell.rs`), its steps (`measurement.rs`), and which cells
//! take turns (`comparison/fair.rs`).

use std::time::Duration;

use isobench_result as report;
use isobench_runner::{Job, RunWorkload, StopCondition, Urgency};

use crate::cell::{CellMeasurer, Entrant, MeasuredCell, WATCH_EVERY};
use crate::design::CellPlan;
use crate::failure::{Failure, Outcome};
use crate::measurement::{Measured, Measurement, Started};
use crate::messages::Messages;
use crate::observed::SecondSource;
use crate::onlooker::{Onlooker, SoFar};
use crate::session_state::{keeps_prepared, roll_back_prepared};
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
    /// This cell works: what it has done so far.
    Working(usize, &'s SoFar),
}

/// The cells of a block, in which all have a place each.
pub struct Block<'b> {
    /// The cells.
    pub cells: &'b [CellPlan],
    /// The number of the round.
    pub number: u32,
    /// Whoever looks on wants latencies.
    pub latencies: bool,
    /// How the cells take turns; `None`: each in one piece.
    pub turns: Option<Turns<'b>>,
}

/// How cells take turns.
pub struct Turns<'b> {
    /// The measured time of each cell.
    pub time: Duration,
    /// The shortest slice.
    pub slice: Duration,
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
    second: Option<SecondSource>,
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
    /// Measures the cells of a block.
    pub fn measure_block(&mut self, block: &Block<'_>, follow: &mut dyn FnMut(BlockStep<'_>)) -> Played {
        let mut failures = Failures(block.cells.iter().map(|_| None).collect());
        let mut rooms = vec![0; self.targets.len()];
        let mut entrants = Vec::new();
        let mut workloads = Vec::new();
        for (place, cell) in block.cells.iter().enumerate() {
            let alone = block.turns.is_none() || matches!(self.design.works[cell.work].tables, Tables::Found);
            rooms[cell.server] += usize::from(!alone);
            let room = if alone { 0 } else { rooms[cell.server] };
            let entered = (!self.is_over(block)).then(|| {
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
        if !self.is_over(block) {
            self.write_tables(&mut entrants, &mut |place, failure| failures.0[place] = Some(failure));
        }
        self.play(block, entrants, workloads, failures, follow)
    }

    /// True if no further cell is to begin, and none to take another turn. A cell in one piece obeys
    /// requests by itself, and has a round even so.
    fn is_over(&self, block: &Block<'_>) -> bool {
        block.turns.is_some() && self.control.urgency() > Urgency::None
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
        let second = measurement.second_source(self.design.plan.observe())?;
        Ok(ReadyCell { measurement, job, messages: Messages::kept(self.say), second })
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
            let ready = ready.as_ref().filter(|_| !self.is_over(block));
            started.push(ready.and_then(|ReadyCell { measurement, job, messages, .. }| {
                let show = &mut |so_far: &SoFar| follow(BlockStep::Working(place, so_far));
                let mut onlooker = Onlooker { every: WATCH_EVERY, latencies: block.latencies, show };
                let started = failures.keep(place, measurement.start(job, messages, &mut onlooker));
                started.inspect(|started| {
                    if block.turns.is_some() {
                        started.rest();
                    }
                })
            }));
        }
        let slices = self.work(block, &mut started, &mut failures, follow);
        let ended: Vec<Option<Measured>> = started
            .into_iter()
            .enumerate()
            .map(|(place, started)| {
                // One that never worked has nothing to report.
                let started = started.filter(|started| started.so_far().is_some())?;
                if slices.is_some() {
                    started.wake();
                }
                let measured = failures.keep(place, started.end(block.number))?;
                follow(BlockStep::Working(place, &measured.so_far()));
                Some(measured)
            })
            .collect();
        let judged: Vec<Option<(Measured, Option<String>)>> = ready
            .into_iter()
            .zip(ended)
            .enumerate()
            .map(|(place, (ready, measured))| {
                let (ReadyCell { measurement, job, second, .. }, mut measured) = ready.zip(measured)?;
                if let Some(slices) = &slices {
                    slices.note(&mut measured);
                }
                if keeps_prepared(measurement.sources) {
                    failures.keep(place, roll_back_prepared(measurement.site))?;
                }
                let judgement = measurement.judge(job, second, &mut measured);
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
        Played { measured: measured.collect(), in_one_piece: slices.and_then(|slices| slices.in_one_piece) }
    }

    /// Lets all cells work: each in one piece, or in turns, whose slices are returned.
    fn work(
        &self,
        block: &Block<'_>,
        started: &mut [Option<Started<'_>>],
        failures: &mut Failures,
        follow: &mut dyn FnMut(BlockStep<'_>),
    ) -> Option<Slices> {
        let mut work = |place: usize, cell: &mut Option<Started<'_>>, stop: StopCondition| {
            let Some(started) = cell else { return };
            let show = &mut |so_far: &SoFar| follow(BlockStep::Working(place, so_far));
            let mut onlooker = Onlooker { every: WATCH_EVERY, latencies: block.latencies, show };
            let worked = started.work(stop, &mut onlooker);
            if failures.keep(place, worked).is_none() {
                *cell = None;
            }
        };
        let Some(turns) = &block.turns else {
            for (place, cell) in started.iter_mut().enumerate() {
                work(place, cell, self.design.stop);
            }
            return None;
        };
        let slices = Slices::for_turns(turns, started);
        for turn in 0..slices.count {
            for &place in &turns.orders[turn as usize % turns.orders.len()] {
                let cell = &mut started[place];
                // A cell with a client that failed takes no further turn.
                let failed = cell.as_ref().and_then(Started::so_far).is_some_and(|run| run.aborted > 0);
                if !failed && !self.is_over(block) {
                    work(place, cell, StopCondition::Turn(slices.length));
                }
            }
        }
        Some(slices)
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
    fn for_turns(turns: &Turns<'_>, started: &[Option<Started<'_>>]) -> Slices {
        let idle = started.iter().flatten().filter_map(Started::idle_in_warmup).max();
        Slices::of(turns.time, turns.slice, idle.unwrap_or_default())
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
        measured.round.turns = Some(report::Turns {
            count: run.turns,
            length_s: self.length.as_secs_f64(),
            idle_share: if elapsed > 0.0 { run.idle.as_secs_f64() / elapsed } else { 0.0 },
        });
    }
}
