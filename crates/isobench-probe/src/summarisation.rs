//! How many transactions have to commit beside an open one until PostgreSQL summarises the oldest
//! of them.
//!
//! PostgreSQL keeps the details of ten times as many serializable transactions as there can be
//! sessions and prepared transactions; committed ones stay as long as an open one overlaps them.
//! Beyond that it keeps a summary of the oldest. Source: PostgreSQL's
//! `src/backend/storage/lmgr/README-SSI`, "Summarizing"; Ports and Grittner 2012, §6.2.

use isobench_pgwire::Connection;

/// The settings that bound the number of sessions, old names and new ones; the few sessions of the
/// server's own besides are in the reserve.
const SESSIONS: &str = "SELECT sum(CAST(setting AS integer)) FROM pg_settings WHERE name IN ('max_connections', \
     'autovacuum_max_workers', 'autovacuum_worker_slots', 'max_worker_processes', 'max_wal_senders', \
     'max_prepared_transactions')";

/// Sessions that no setting counts.
const RESERVE: u64 = 20;

/// Assumed where the settings can't be read: PostgreSQL's defaults.
const DEFAULT: u64 = 130;

/// The most transactions that are run: a server for more sessions would take too long.
pub const MOST: u64 = 100_000;

/// So many transactions are enough; never more than [`MOST`].
pub fn enough(connection: &mut Connection) -> u64 {
    let sessions = connection.value(SESSIONS).ok().flatten().and_then(|answer| answer.parse::<u64>().ok());
    (sessions.unwrap_or(DEFAULT).saturating_add(RESERVE)).saturating_mul(10).min(MOST)
}
