//! Runs a job's clients in one thread on any transport and clock, so that tests need neither server nor time.

use isobench_script::Prng;

use crate::control::{Control, Published};
use crate::fleet::Outcome;
use crate::job::{Job, Report};
use crate::spec::Stop;
use crate::time::Clock;
use crate::transport::Transport;
use crate::worker::{Crew, Order};

/// All clients of a job as one worker, on sessions that count as connected and idle.
pub struct Simulation<T> {
    crew: Crew<T>,
    schedule: Prng,
}

impl<T: Transport> Simulation<T> {
    /// Client number *n* uses connection *n* of the transport.
    pub fn new(job: &Job, transport: T) -> Simulation<T> {
        let (clients, schedules) = job.cast();
        let schedule = schedules.into_iter().next().unwrap_or_else(|| Prng::seed(job.spec.seed));
        Simulation { crew: Crew::new(clients, transport), schedule }
    }

    /// Runs until `stop`, or until `control` asks to end; may be called again with the same sessions.
    pub fn run(
        &mut self,
        job: &Job,
        stop: Stop,
        clock: &dyn Clock,
        control: &Control,
        report: &Report<'_>,
    ) -> Outcome {
        let published = Published::default();
        let schedule = self.schedule.clone();
        let began = clock.now();
        let order = Order { job, stop, clock, control, published: &published, report, schedule };
        let account = self.crew.run(&order);
        Outcome::from_accounts(job, began, &[account])
    }
}
