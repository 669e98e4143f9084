//! How far a standby is behind its server while clients read on it, as the server sees it.
//!
//! Source: PostgreSQL manual, view `pg_stat_replication`.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use isobench_database::Connector;
use isobench_pgwire::Connection;
use isobench_report::StandbyLag;

/// The interval between two samples.
const EVERY: Duration = Duration::from_millis(100);

/// Bytes of the log that the last standby hasn't replayed, and the time in milliseconds that it last took
/// to replay something; the latter is null where nothing was written lately.
const QUESTION: &str = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn)::bigint, \
    extract(epoch FROM replay_lag) * 1000 FROM pg_catalog.pg_stat_replication \
    ORDER BY application_name DESC LIMIT 1";

/// Samples the lag until `over` is closed; `None` if there was nothing to sample.
pub fn watch(server: &Connector, over: &Receiver<()>) -> Option<StandbyLag> {
    let mut connection = server.open().ok()?;
    let (mut bytes, mut times): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    while over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // A server that is gone is reported by its clients.
        let Some((behind, took)) = sample(&mut connection) else { break };
        bytes.extend(behind);
        times.extend(took);
    }
    connection.close();
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

fn sample(connection: &mut Connection) -> Option<(Option<f64>, Option<f64>)> {
    let rows = connection.query(QUESTION).ok()?.rows;
    let number = |column: usize| rows.first()?.get(column)?.as_deref()?.parse::<f64>().ok();
    Some((number(0), number(1)))
}
