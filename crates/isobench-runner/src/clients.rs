//! The clients of a run and the random streams of its workers, split from the seed.

use isobench_script::{Prng, Value};

use crate::client::Client;
use crate::job::Job;
use crate::spec::ClientShare;

/// The random streams of one worker.
#[derive(Debug, Clone)]
pub(crate) struct WorkerStreams {
    /// Chooses the next script, where clients share a stream.
    pub(crate) choice: Option<Prng>,
    /// Draws the gaps of the schedule.
    pub(crate) schedule: Prng,
    /// Samples the transactions that are logged.
    pub(crate) sampling: Prng,
}

/// Makes the clients of a run and the streams of its workers.
///
/// The seed is split in pgbench's order: the expressions of each client; the variable
/// `default_seed` (unless it is set); then for each worker the choice of scripts, the schedule, the
/// sampling. If each client has its own stream for the choice, these come first, so that a client's
/// transactions depend only on the seed and its number. With one client both orders are the same.
pub(crate) fn clients(job: &Job) -> (Vec<Client>, Vec<WorkerStreams>) {
    let mut streams = isobench_script::Streams::new(job.spec.seed);
    let functions: Vec<Prng> = (0..job.spec.clients).map(|_| streams.split()).collect();
    let mut variables = job.workload.variables.clone();
    let symbols = &job.workload.symbols;
    let default_seed = symbols.lookup("default_seed");
    if !default_seed.is_some_and(|slot| variables.is_set(slot)) {
        let number = streams.number();
        if let Some(slot) = default_seed {
            variables.set(slot, Value::Int(number));
        }
    }
    let client_id = symbols.lookup("client_id").filter(|slot| !variables.is_set(*slot));
    let own = job.spec.rules.chooses_per_client();
    let choices: Vec<Option<Prng>> = (0..job.spec.clients).map(|_| own.then(|| streams.split())).collect();
    // Each client may have a worker of its own, so no two machines share a stream.
    let first = job.spec.share.map_or(0, |share| share.first);
    let workers = (0..first + job.spec.workers.max(1))
        .map(|_| WorkerStreams {
            choice: (!own).then(|| streams.split()),
            schedule: streams.split(),
            sampling: streams.split(),
        })
        .skip(first)
        .collect();
    // Backoff draws from a seed of its own, so that a retry policy never changes the transactions.
    let mut backoffs = isobench_script::Streams::new(!job.spec.seed);
    let clients = functions
        .into_iter()
        .zip(choices)
        .enumerate()
        .map(|(id, (function, choice))| {
            let mut variables = variables.clone();
            if let Some(slot) = client_id {
                variables.set(slot, Value::Int(i64::try_from(id).unwrap_or(i64::MAX)));
            }
            let streams = (function, choice, backoffs.split());
            Client::new(id, variables, streams, (&job.program, job.recording.as_ref(), job.most_kept()))
        })
        .collect::<Vec<_>>();
    let clients = match job.spec.share {
        None => clients,
        Some(ClientShare { first, clients: some }) => clients.into_iter().skip(first).take(some).collect(),
    };
    (clients, workers)
}
