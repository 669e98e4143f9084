//! Views that show other sessions that a session waits for a lock.

/// The way to find out that a session waits for a lock of another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitView {
    /// By queries.
    Query {
        /// The query for a session's own identifier.
        own_name: &'static str,
        /// Queries for a truth value; the first one that the server understands is used. `{id}` is
        /// replaced by the session, `{ids}` by all sessions that it may wait for, separated by
        /// commas.
        waits: &'static [&'static str],
    },
    /// There is no view, or none that shows row locks: only the time that passes shows it.
    Time,
}

/// PostgreSQL's: the function used by its own isolation tester, which also recognises waits for
/// safe snapshots, and `pg_blocking_pids` (PostgreSQL manual, "System Information Functions").
pub(crate) const PG_BLOCKING: WaitView = WaitView::Query {
    own_name: "SELECT pg_catalog.pg_backend_pid()",
    waits: &[
        "SELECT pg_catalog.pg_isolation_test_session_is_blocked({id}, '{{ids}}')",
        "SELECT pg_catalog.pg_blocking_pids({id}) && '{{ids}}'::pg_catalog.int4[]",
    ],
};
