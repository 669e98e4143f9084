//! Runs a job's clients in one thread on any transport and clock, so that tests depend neither on a
//! server nor on time.

use crate::clients::{WorkerStreams, clients};
use crate::control::Control;
use crate::event::EventHandler;
use crate::fleet::RunOutcome;
use crate::job::Job;
use crate::observer::TransactionObserver;
use crate::progress::PublishedProgress;
use crate::spec::StopCondition;
use crate::time::Clock;
use crate::transport::Transport;
use crate::worker::{Worker, WorkerTask};

/// All clients of a job as one worker, on sessions taken to be connected and idle.
pub struct Simulation<T> {
    worker: Worker<T>,
    streams: WorkerStreams,
}

impl<T: Transport> Simulation<T> {
    /// Sets up the clients; client *n* uses connection *n* of the transport.
    pub fn new(job: &Job, transport: T) -> Simulation<T> {
        let (mut clients, mut streams) = clients(job);
        if !job.spec.connect_each {
            for client in &mut clients {
                client.take_over(&[]);
            }
        }
        Simulation { worker: Worker::new(clients, transport), streams: streams.swap_remove(0) }
    }

    /// Runs until `stop`, or until `control` asks to end. May be called again with the same
    /// sessions.
    pub fn run(
        &mut self,
        job: &Job,
        stop: StopCondition,
        clock: &dyn Clock,
        control: &Control,
        report: &EventHandler<'_>,
        observer: Option<&mut (dyn TransactionObserver + 'static)>,
    ) -> RunOutcome {
        let published = PublishedProgress::default();
        let began = clock.now();
        let task = WorkerTask {
            job,
            stop,
            clock,
            began,
            control,
            published: &published,
            latencies: false,
            report,
            streams: &self.streams,
        };
        let outcome = self.worker.run(&task, observer);
        RunOutcome::from_workers(job, began, vec![outcome])
    }
}
