//! How it is seen from outside that a session waits for another one.

/// How a product tells that a session waits for a lock that another session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitView {
    /// It can be asked.
    Query {
        /// What a session is called there, asked in the session itself.
        own_name: &'static str,
        /// Questions with a truth value as their answer; the first one that the server understands
        /// is used. `{id}` stands for the session, `{ids}` for all sessions that it may wait for,
        /// with commas between them.
        waits: &'static [&'static str],
    },
    /// There is no view, or none that shows row locks: only the time tells.
    Time,
}

/// PostgreSQL's: the function that its own isolation tester uses, which knows waits for safe
/// snapshots, too, and `pg_blocking_pids` (PostgreSQL manual, "System Information Functions").
pub(crate) const PG_BLOCKING: WaitView = WaitView::Query {
    own_name: "SELECT pg_catalog.pg_backend_pid()",
    waits: &[
        "SELECT pg_catalog.pg_isolation_test_session_is_blocked({id}, '{{ids}}')",
        "SELECT pg_catalog.pg_blocking_pids({id}) && '{{ids}}'::pg_catalog.int4[]",
    ],
};
