//! The number of transactions that must commit during an open one before PostgreSQL summarises the
//! oldest of them.
//!
//! PostgreSQL tracks ten times as many serializable transactions individually as there can be
//! sessions and prepared transactions. Committed ones are tracked as long as an overlapping one is
//! open. If there are more, it summarises the oldest. Source: PostgreSQL's
//! `src/backend/storage/lmgr/README-SSI`, "Summarizing"; Ports and Grittner 2012, §6.2.

use isobench_pgwire::Connection;

/// The settings that limit the number of sessions, with their old and new names. The server's own
/// few sessions are covered by the reserve.
const SESSIONS: &str = "SELECT sum(CAST(setting AS integer)) FROM pg_settings WHERE name IN ('max_connections', \
     'autovacuum_max_workers', 'autovacuum_worker_slots', 'max_worker_processes', 'max_wal_senders', \
     'max_prepared_transactions')";

/// Sessions not covered by settings.
const RESERVE: u64 = 20;

/// The number assumed if the settings can't be read: PostgreSQL's defaults.
const DEFAULT: u64 = 130;

/// The maximum number of transactions; for a server with more sessions the probe would take too
/// long.
pub const MOST: u64 = 100_000;

/// The number of transactions that suffices, at most [`MOST`].
pub fn required(connection: &mut Connection) -> u64 {
    let sessions = connection.value(SESSIONS).ok().flatten().and_then(|answer| answer.parse::<u64>().ok());
    (sessions.unwrap_or(DEFAULT).saturating_add(RESERVE)).saturating_mul(10).min(MOST)
}
