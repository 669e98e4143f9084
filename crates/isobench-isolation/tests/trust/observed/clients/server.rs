//! The server's side: requests are executed, wait for each other, and are answered.

use super::super::database::{Answer, State, Statement};
use super::{Event, Simulation};

impl Simulation {
    /// Executes a request, or goes on with it after a wait.
    pub(super) fn arrive(&mut self, attempt: usize) {
        if self.tx(attempt).state != State::Running {
            return;
        }
        if self.attempts[attempt].request.cut {
            return self.end(attempt, false);
        }
        let tx = self.attempts[attempt].tx;
        self.waits.remove(&tx);
        while self.attempts[attempt].request.from < self.attempts[attempt].request.to {
            let number = self.attempts[attempt].request.from;
            let statement = self.attempts[attempt].script.statements[number].clone();
            let position = u16::try_from(number).expect("few statements");
            match self.database.execute(tx, position, &statement) {
                Answer::Done(shown) => self.attempts[attempt].request.shown.push((number, shown)),
                Answer::Wait(holder) if !self.deadlock(tx, holder) => {
                    self.waits.insert(tx, holder);
                    self.waiting.push(attempt);
                    return;
                }
                Answer::Wait(_) | Answer::Failed => return self.end(attempt, false),
            }
            if statement == Statement::RollbackTo {
                self.wake();
            }
            self.attempts[attempt].request.from += 1;
        }
        if self.attempts[attempt].request.ends {
            return self.end(attempt, true);
        }
        let delay = self.delay();
        self.after(delay, Event::Reply(attempt, true));
    }

    /// True if to wait for this transaction would be to wait for oneself.
    fn deadlock(&self, tx: usize, holder: usize) -> bool {
        let mut at = holder;
        for _ in 0..=self.waits.len() {
            if at == tx {
                return true;
            }
            let Some(next) = self.waits.get(&at) else { return false };
            at = *next;
        }
        false
    }

    /// Ends a transaction: as its client wishes, or because it failed.
    fn end(&mut self, attempt: usize, wished: bool) {
        let tx = self.attempts[attempt].tx;
        let done = if wished && !self.attempts[attempt].script.rolls_back {
            self.database.commit(tx)
        } else {
            self.database.abort(tx);
            wished
        };
        self.wake();
        let delay = self.delay();
        self.after(delay, Event::Reply(attempt, done));
    }

    /// Lets all that wait try again.
    pub(super) fn wake(&mut self) {
        for attempt in std::mem::take(&mut self.waiting) {
            let delay = self.random.u64(1..5);
            self.after(delay, Event::Arrive(attempt));
        }
    }
}
