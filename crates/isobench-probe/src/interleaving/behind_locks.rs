//! Transactions that run after one whose locks are still held, as if it were under way.

use std::time::{Duration, Instant};

use super::TryError;
use super::held::Locks;
use super::program::Transaction;
use super::sessions::{Changes, ExecutedSchedule, Sessions, Went, asks};
use super::step::Step;
use super::tables::{Delta, query};

/// How long a transaction that limits its waits may wait for locks that were taken over.
const LIMITED_WAIT: Duration = Duration::from_secs(2);

impl Sessions<'_> {
    /// Runs transactions one after the other, in this order; from the end of the first transaction on,
    /// another session holds the locks that it had after so many steps, until a transaction waits for it.
    /// If the first one isn't in the order, they are held from the beginning. `None` if that can't be done.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn run_behind_locks(
        &mut self,
        transactions: &[Transaction],
        order: &[usize],
        after: usize,
        allocation: usize,
        later: &[Transaction],
    ) -> Result<Option<ExecutedSchedule>, TryError> {
        let Some(locks) = self.locks_of_first(transactions, after, allocation)? else { return Ok(None) };
        let mut in_progress = self.in_progress(transactions, allocation);
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
                match self.step(&mut in_progress, *number)? {
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
                    self.leave(&mut in_progress, transactions.len())?;
                    self.put_back(&changed.0, 0)?;
                    return Ok(None);
                }
                held = true;
            }
        }
        if held {
            self.release()?;
        }
        self.concluded(in_progress, &|number| order.contains(&number), &changed, later).map(Some)
    }

    /// True if a transaction asked for what no order gives while another one than the first waited. Which
    /// locks that one held isn't known.
    pub fn asks_during_a_wait(&self, steps: &[Step]) -> bool {
        let waiting = |(at, step): (usize, &Step)| step.waits().then_some((at, step.transaction));
        let mut waits = steps.iter().enumerate().filter_map(waiting).filter(|(_, waiting)| *waiting > 0);
        waits.any(|(at, waiting)| {
            let resumed = |step: &&Step| step.transaction != waiting;
            let asked = |step: &Step| self.by_functions.is_some() || asks(&step.sql).is_some();
            steps[at + 1..].iter().take_while(resumed).any(asked)
        })
    }

    /// The locks that the first transaction has after so many steps. `None` if the server can't
    /// say.
    fn locks_of_first(
        &mut self,
        transactions: &[Transaction],
        after: usize,
        allocation: usize,
    ) -> Result<Option<Locks>, TryError> {
        let mut alone = self.in_progress(&transactions[..1], allocation);
        while alone.executions[0].steps < after && self.step(&mut alone, 0)? == Went::On {}
        let pid = self.all[alone.sessions[0]].pid();
        let patience = self.patience();
        let locks = match Locks::of(pid, &self.tables, &mut self.control, patience) {
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
        let Some(holder) = self.all.last_mut() else { return Ok(false) };
        locks.take(&self.tables, changed, holder, patience)
    }

    fn release(&mut self) -> Result<(), TryError> {
        let patience = self.patience();
        let Some(holder) = self.all.last_mut() else { return Ok(()) };
        query(holder, "ROLLBACK", patience).map(drop)
    }
}
