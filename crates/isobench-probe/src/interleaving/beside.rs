//! Transactions that run after one whose locks are still held, as if it were under way.

use std::time::{Duration, Instant};

use super::TryError;
use super::ground::{Delta, query};
use super::held::Locks;
use super::program::Part;
use super::stage::{Changes, Performance, Stage, Went, asks};
use super::step::Step;

/// How long a transaction that limits its waits may wait for locks that were taken over.
const LIMITED_WAIT: Duration = Duration::from_secs(2);

impl Stage<'_> {
    /// Runs transactions one after the other, in this order; from the end of the first one of the cast on,
    /// another session holds the locks that it had after so many steps, until a transaction waits for it.
    /// If the first one isn't in the order, they are held from the beginning. `None` if that can't be done.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn perform_beside_locks(
        &mut self,
        cast: &[Part],
        order: &[usize],
        after: usize,
        allocation: usize,
        later: &[Part],
    ) -> Result<Option<Performance>, TryError> {
        let Some(locks) = self.locks_of_first(cast, after, allocation)? else { return Ok(None) };
        let mut under_way = self.cast(cast, allocation);
        let (mut held, mut changed) = (false, Changes::default());
        if !order.contains(&0) {
            if !self.hold(&locks, &changed.0)? {
                return Ok(None);
            }
            held = true;
        }
        for number in order {
            let mut waiting_since = None;
            loop {
                match self.step(&mut under_way, *number)? {
                    Went::On => waiting_since = None,
                    Went::Waits if held => {
                        let since: &mut Instant = waiting_since.get_or_insert_with(Instant::now);
                        if !self.limits_waits || since.elapsed() > LIMITED_WAIT {
                            self.release()?;
                            held = false;
                        }
                    }
                    Went::Ended | Went::Waits => break,
                }
            }
            if *number == 0 {
                let (further, writers) = self.changes()?;
                changed = (changed.0.then(&further), &changed.1 | &writers);
                if !self.hold(&locks, &changed.0)? {
                    self.leave(&mut under_way, cast.len())?;
                    self.put_back(&changed.0, 0)?;
                    return Ok(None);
                }
                held = true;
            }
        }
        if held {
            self.release()?;
        }
        self.concluded(under_way, &|number| order.contains(&number), &changed, later).map(Some)
    }

    /// True if a transaction asked for what no order gives while another one than the first waited. Which
    /// locks that one held isn't known.
    pub fn asks_beside_a_wait(&self, steps: &[Step]) -> bool {
        let waiting = |(at, step): (usize, &Step)| step.waits().then_some((at, step.transaction));
        let mut waits = steps.iter().enumerate().filter_map(waiting).filter(|(_, waiting)| *waiting > 0);
        waits.any(|(at, waiting)| {
            let resumed = |step: &&Step| step.transaction != waiting;
            let asked = |step: &Step| self.by_functions.is_some() || asks(&step.sql).is_some();
            steps[at + 1..].iter().take_while(resumed).any(asked)
        })
    }

    /// The locks that the first transaction of a cast has after so many steps. `None` if the server can't
    /// say.
    fn locks_of_first(
        &mut self,
        cast: &[Part],
        after: usize,
        allocation: usize,
    ) -> Result<Option<Locks>, TryError> {
        let mut alone = self.cast(&cast[..1], allocation);
        while alone.actors[0].steps < after && self.step(&mut alone, 0)? == Went::On {}
        let pid = self.sessions[alone.sessions[0]].pid();
        let patience = self.patience();
        let locks = match Locks::of(pid, &self.ground, &mut self.control, patience) {
            Ok(locks) => Some(locks),
            Err(TryError::Server(_)) => None,
            Err(error) => return Err(error),
        };
        self.leave(&mut alone, 1)?;
        let (changed, _) = self.changes()?;
        self.put_back(&changed, 0)?;
        Ok(locks)
    }

    fn hold(&mut self, locks: &Locks, changed: &Delta) -> Result<bool, TryError> {
        let patience = self.patience();
        let Some(holder) = self.sessions.last_mut() else { return Ok(false) };
        locks.take(&self.ground, changed, holder, patience)
    }

    fn release(&mut self) -> Result<(), TryError> {
        let patience = self.patience();
        let Some(holder) = self.sessions.last_mut() else { return Ok(()) };
        query(holder, "ROLLBACK", patience).map(drop)
    }
}
