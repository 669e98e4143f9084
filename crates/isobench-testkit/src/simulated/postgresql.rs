//! PostgreSQL's answers to isobench's queries, as data: a part of the query, and the rows.
//!
//! With them, isobench takes a [`ListeningServer`](super::ListeningServer) for a PostgreSQL with
//! pgbench's tables at scale 1. Other queries get the answer of any SELECT.

use super::settings::{Answer, COMMITTED_ROWS, LEVEL, PROCESS, SCHEMA, SimulationSettings};

/// Settings with these answers, preceded by the test's own.
pub fn settings(own: impl IntoIterator<Item = (&'static str, Answer)>) -> SimulationSettings {
    SimulationSettings {
        answers: own.into_iter().chain(answers()).collect(),
        ..SimulationSettings::default()
    }
}

/// The answers; the first matching one is used.
fn answers() -> Vec<(&'static str, Answer)> {
    let one = |value: &'static str| Answer::column("v", &[value]);
    let row = |values: &[&'static str]| table(&[values]);
    vec![
        // The server.
        ("version()", one("PostgreSQL 15.18 (simulated)")),
        ("pg_is_in_recovery", one("f")),
        ("pg_settings", table(&[&["fsync", "on"], &["max_connections", "100"]])),
        ("pg_extension", row(&["plpgsql", "1.0"])),
        ("pg_db_role_setting", table(&[])),
        ("pg_table_size", row(&["pgbench_accounts", "table", "13434880", "100000"])),
        ("select oid, relname", table(&[])),
        // The session.
        ("transaction_isolation", one(LEVEL)),
        ("pg_backend_pid", one(PROCESS)),
        // isobench's schema, left behind by an earlier run.
        ("pg_try_advisory_lock", one("t")),
        ("obj_description", one("made by isobench; safe to drop")),
        ("current_schema()", one(SCHEMA)),
        // The tables: not partitioned, unchanged since they were created; their contents.
        ("select relkind", row(&["f", "t"])),
        ("sum(abalance)", row(&[COMMITTED_ROWS, "0", "0", "0", "0"])),
        ("count(*) from pgbench_branches", one("1")),
    ]
}

/// Rows with meaningless column names.
fn table(rows: &[&[&'static str]]) -> Answer {
    let columns = rows.first().map_or(1, |row| row.len());
    let rows = rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    Answer { columns: vec!["v"; columns], rows }
}
