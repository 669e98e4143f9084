//! Runs a job's clients in one thread on any transport and clock, so that tests need neither server
//! nor time.

use crate::control::{Control, Published};
use crate::event::Report;
use crate::fleet::RunOutcome;
use crate::job::{Job, Streams};
use crate::observer::Observer;
use crate::spec::Stop;
use crate::time::Clock;
use crate::transport::Transport;
use crate::worker::{Crew, Order};

/// All clients of a job as one worker, on sessions that count as connected and idle.
pub struct Simulation<T> {
    crew: Crew<T>,
    streams: Streams,
}

impl<T: Transport> Simulation<T> {
    /// Client number *n* uses connection *n* of the transport.
    pub fn new(job: &Job, transport: T) -> Simulation<T> {
        let (mut clients, mut streams) = job.cast();
        if !job.spec.connect_each {
            for client in &mut clients {
                client.take_over(&[]);
            }
        }
        Simulation { crew: Crew::new(clients, transport), streams: streams.swap_remove(0) }
    }

    /// Runs until `stop`, or until `control` asks to end; may be called again with the same
    /// sessions.
    pub fn run(
        &mut self,
        job: &Job,
        stop: Stop,
        clock: &dyn Clock,
        control: &Control,
        report: &Report<'_>,
        observer: Option<&mut (dyn Observer + 'static)>,
    ) -> RunOutcome {
        let published = Published::default();
        let began = clock.now();
        let order =
            Order { job, stop, clock, began, control, published: &published, report, streams: &self.streams };
        let account = self.crew.run(&order, observer);
        RunOutcome::from_accounts(job, began, vec![account])
    }
}
