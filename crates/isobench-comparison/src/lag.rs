//! How far a standby is behind its server while clients read on it.
//!
//! Source: PostgreSQL manual, "Recovery Information Functions" and view `pg_stat_replication`.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use isobench_database::Connector;
use isobench_pgwire::Connection;
use isobench_result::StandbyLag;

/// The interval between two samples.
const EVERY: Duration = Duration::from_millis(100);

/// The end of the log on the server.
const END: &str = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), '0/0')";

/// How much of it the standby has replayed.
const REPLAYED: &str = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0')";

/// The time in milliseconds that standbys last took to replay something, the last one first; null where
/// nothing was written lately, and to roles that may not see it.
const TOOK: &str = "SELECT extract(epoch FROM replay_lag) * 1000 FROM pg_catalog.pg_stat_replication \
    ORDER BY application_name DESC";

/// Samples the lag of a standby until `over` is closed; `None` if there was nothing to sample. `last`: of
/// several standbys of the server it is the last one by its name, else it isn't known which.
pub fn watch(server: &Connector, standby: &Connector, last: bool, over: &Receiver<()>) -> Option<StandbyLag> {
    let (mut server, mut standby) = (server.open().ok()?, standby.open().ok()?);
    let (mut bytes, mut times): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    while over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // First the standby, so that it may have replayed more by then, but never less.
        // A server that is gone is reported by its clients.
        let Some(replayed) = numbers(&mut standby, REPLAYED) else { break };
        let (Some(end), Some(took)) = (numbers(&mut server, END), numbers(&mut server, TOOK)) else { break };
        if let ([Some(replayed)], [Some(end)]) = (&replayed[..], &end[..]) {
            bytes.push((end - replayed).max(0.0));
        }
        if last || took.len() == 1 {
            times.extend(took.first().copied().flatten());
        }
    }
    server.close();
    standby.close();
    let mean =
        |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
    Some(StandbyLag {
        samples: crate::design::count(bytes.len()),
        bytes_mean: mean(&bytes)?,
        bytes_max: most(&bytes)?,
        replay_ms_mean: mean(&times),
        replay_ms_max: most(&times),
    })
}

/// The only column of an answer, as numbers.
fn numbers(connection: &mut Connection, question: &str) -> Option<Vec<Option<f64>>> {
    let rows = connection.query(question).ok()?.rows;
    Some(rows.into_iter().map(|row| row.first()?.as_deref()?.parse::<f64>().ok()).collect())
}
