//! The counters and the views that they are read from, as data. To add one, add a row.
//!
//! Names and meanings: PostgreSQL manual, "The Cumulative Statistics System"; CockroachDB
//! documentation, "Available metrics" (`metric-names.md`). Not here: reading and subtracting them
//! (`counters`).

use std::ops::RangeInclusive;

use crate::arm::Arm;

/// A view with counters.
#[derive(Debug)]
pub struct CounterView {
    /// Its name, the first part of the counters' names.
    pub name: &'static str,
    /// The major versions that have it in this form.
    pub versions: RangeInclusive<u32>,
    /// An expression that names a row, if there are several; the second part of the counters'
    /// names. Rows without a change are left out.
    pub row: Option<&'static str>,
    /// The rest of the query, after the columns.
    pub from: &'static str,
    /// The counters.
    pub columns: &'static [CounterColumn],
}

/// A counter in a view.
#[derive(Debug)]
pub struct CounterColumn {
    /// Its name, the last part of the counter's name.
    pub name: &'static str,
    /// The way to read it.
    pub source: CounterSource,
    /// Its meaning, with its unit.
    pub meaning: &'static str,
}

/// The way to read a counter from its view.
#[derive(Debug, Clone, Copy)]
pub enum CounterSource {
    /// From the column of that name.
    Own,
    /// As the sum of the column of that name over all rows.
    Sum,
    /// By an expression.
    Sql(&'static str),
    /// As the value of the metric of that name, in a table of names and values.
    Metric,
}

const fn own(name: &'static str, meaning: &'static str) -> CounterColumn {
    CounterColumn { name, source: CounterSource::Own, meaning }
}

const fn sum(name: &'static str, meaning: &'static str) -> CounterColumn {
    CounterColumn { name, source: CounterSource::Sum, meaning }
}

const fn sql(name: &'static str, sql: &'static str, meaning: &'static str) -> CounterColumn {
    CounterColumn { name, source: CounterSource::Sql(sql), meaning }
}

const fn metric(name: &'static str, meaning: &'static str) -> CounterColumn {
    CounterColumn { name, source: CounterSource::Metric, meaning }
}

impl CounterView {
    /// The query: the row's name if there is one, then the columns in their order.
    pub fn query(&self) -> String {
        let all: Vec<String> = self.row.map(str::to_owned).into_iter().chain(self.columns()).collect();
        let group = if self.row.is_some() { " group by 1" } else { "" };
        format!("select {} {}{group}", all.join(", "), self.from)
    }

    /// The same as a part of a query of several views.
    pub(crate) fn arm(&self) -> Arm {
        Arm {
            name: self.row.map(str::to_owned),
            columns: self.columns().collect(),
            from: self.from.to_owned(),
            sums: self.row.is_some(),
        }
    }

    fn columns(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| {
            let name = column.name;
            match column.source {
                CounterSource::Own => name.to_owned(),
                CounterSource::Sum => format!("sum({name})"),
                CounterSource::Sql(sql) => sql.to_owned(),
                CounterSource::Metric => format!("sum(case when name = '{name}' then value end)"),
            }
        })
    }
}

/// Until now: there is no last version.
const ON: u32 = u32::MAX;

/// The current database's row.
const DATABASE: &str = "from pg_catalog.pg_stat_database where datname = current_database()";

/// PostgreSQL's views. Related products are asked for those that they have. `pg_stat_lock` is new
/// in version 19.
pub static POSTGRESQL_VIEWS: [CounterView; 12] = [
    CounterView {
        name: "pg_stat_database",
        versions: 9..=ON,
        row: None,
        from: DATABASE,
        columns: &[
            own(
                "xact_commit",
                "transactions committed in the database, connecting and single statements included",
            ),
            own("xact_rollback", "transactions rolled back in the database"),
            own("deadlocks", "deadlocks detected"),
            own("conflicts", "queries cancelled because of recovery on a standby"),
            own("blks_read", "blocks read from outside the server's buffers"),
            own("blks_hit", "blocks found in the server's buffers"),
            own("tup_returned", "rows read by scans"),
            own("tup_fetched", "rows fetched by index scans"),
            own("tup_inserted", "rows inserted"),
            own("tup_updated", "rows updated"),
            own("tup_deleted", "rows deleted"),
            own("temp_files", "temporary files made"),
            own("temp_bytes", "bytes written to temporary files"),
        ],
    },
    CounterView {
        name: "pg_stat_database",
        versions: 14..=ON,
        row: None,
        from: DATABASE,
        columns: &[
            own("sessions", "sessions opened"),
            own("sessions_fatal", "sessions ended by errors"),
            own("sessions_killed", "sessions ended by an administrator"),
            own("active_time", "time that sessions spent in statements, in milliseconds"),
            own("idle_in_transaction_time", "time that sessions were idle in a transaction, in milliseconds"),
        ],
    },
    CounterView {
        name: "pg_current_wal_insert_lsn",
        versions: 10..=ON,
        row: None,
        from: "",
        columns: &[sql(
            "bytes",
            "case when not pg_catalog.pg_is_in_recovery() then \
             pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0') end",
            "position in the write-ahead log in bytes, of the whole server, without lag",
        )],
    },
    CounterView {
        name: "pg_stat_wal",
        versions: 14..=ON,
        row: None,
        from: "from pg_catalog.pg_stat_wal",
        columns: &[
            own("wal_records", "records written to the write-ahead log"),
            own("wal_fpi", "full-page images written to the write-ahead log"),
            own("wal_bytes", "bytes written to the write-ahead log"),
            own("wal_buffers_full", "times that the log was written because its buffers were full"),
        ],
    },
    CounterView {
        name: "pg_stat_wal",
        versions: 14..=17,
        row: None,
        from: "from pg_catalog.pg_stat_wal",
        columns: &[
            own("wal_write", "times that log buffers were written"),
            own("wal_sync", "times that log files were synced"),
        ],
    },
    CounterView {
        name: "pg_stat_bgwriter",
        versions: 10..=16,
        row: None,
        from: "from pg_catalog.pg_stat_bgwriter",
        columns: &[
            own("checkpoints_timed", "checkpoints because of checkpoint_timeout"),
            own("checkpoints_req", "checkpoints that were requested, or because of max_wal_size"),
            own("buffers_checkpoint", "buffers written by checkpoints"),
            own("buffers_clean", "buffers written by the background writer"),
            own("buffers_backend", "buffers written by sessions themselves"),
            own("checkpoint_write_time", "time that checkpoints wrote, in milliseconds"),
            own("checkpoint_sync_time", "time that checkpoints synced, in milliseconds"),
        ],
    },
    CounterView {
        name: "pg_stat_bgwriter",
        versions: 17..=ON,
        row: None,
        from: "from pg_catalog.pg_stat_bgwriter",
        columns: &[own("buffers_clean", "buffers written by the background writer")],
    },
    CounterView {
        name: "pg_stat_checkpointer",
        versions: 17..=ON,
        row: None,
        from: "from pg_catalog.pg_stat_checkpointer",
        columns: &[
            own("num_timed", "checkpoints because of checkpoint_timeout"),
            own("num_requested", "checkpoints that were requested, or because of max_wal_size"),
            own("buffers_written", "buffers written by checkpoints"),
            own("write_time", "time that checkpoints wrote, in milliseconds"),
            own("sync_time", "time that checkpoints synced, in milliseconds"),
        ],
    },
    CounterView {
        name: "pg_stat_io",
        versions: 16..=ON,
        row: Some("backend_type || ' ' || object || ' ' || context"),
        from: "from pg_catalog.pg_stat_io",
        columns: &[
            sum("reads", "reads"),
            sum("writes", "writes"),
            sum("extends", "extensions of files"),
            sum("hits", "blocks found in the buffers"),
            sum("evictions", "blocks evicted from the buffers"),
            sum("fsyncs", "syncs"),
        ],
    },
    CounterView {
        name: "pg_stat_slru",
        versions: 13..=ON,
        // Version 17 changed the names.
        row: Some(
            "case name when 'Serial' then 'serializable' when 'Xact' then 'transaction' \
             when 'Subtrans' then 'subtransaction' when 'MultiXactOffset' then 'multixact_offset' \
             when 'MultiXactMember' then 'multixact_member' when 'CommitTs' then 'commit_timestamp' \
             when 'Notify' then 'notify' else name end",
        ),
        from: "from pg_catalog.pg_stat_slru",
        columns: &[
            sum("blks_zeroed", "blocks made"),
            sum("blks_hit", "blocks found in the cache"),
            sum("blks_read", "blocks read"),
            sum("blks_written", "blocks written"),
        ],
    },
    CounterView {
        name: "pg_stat_all_tables",
        versions: 9..=ON,
        row: None,
        from: "from pg_catalog.pg_stat_all_tables",
        columns: &[
            sum("autovacuum_count", "tables vacuumed by autovacuum"),
            sum("autoanalyze_count", "tables analyzed by autovacuum"),
            sum("n_tup_hot_upd", "rows updated without new index entries (HOT)"),
            sum("n_dead_tup", "dead rows, estimated (no counter: vacuum takes it down)"),
            sum("seq_scan", "sequential scans begun"),
            sum("idx_scan", "index scans begun"),
        ],
    },
    CounterView {
        name: "pg_stat_lock",
        versions: 19..=ON,
        row: Some("locktype"),
        from: "from pg_catalog.pg_stat_lock",
        columns: &[
            sum("waits", "waits longer than deadlock_timeout"),
            sum("wait_time", "time of those waits, in milliseconds"),
            sum("fastpath_exceeded", "locks that found no fast-path slot"),
        ],
    },
];

/// CockroachDB's metrics of the node that the session is connected to. Metrics that a version
/// doesn't have are left out. Versions are those of CockroachDB.
pub static COCKROACHDB_VIEWS: [CounterView; 2] = [
    CounterView {
        name: "crdb_internal.node_metrics",
        versions: 2..=ON,
        row: None,
        from: "from crdb_internal.node_metrics",
        columns: &[
            metric("txn.commits", "KV transactions committed"),
            metric("txn.aborts", "KV transactions aborted"),
            metric(
                "txn.refresh.auto_retries",
                "requests tried again inside the server after a successful refresh",
            ),
            metric("txn.autoretries", "automatic retries to avoid serializable restarts (old versions)"),
            metric("sql.txn.auto_retry.count", "SQL transactions tried again inside the server"),
            metric("txn.restarts.writetooold", "restarts: a concurrent writer committed first"),
            metric("txn.restarts.writetoooldmulti", "restarts: several concurrent writers committed first"),
            metric("txn.restarts.serializable", "restarts: forwarded commit timestamp at serializable"),
            metric("txn.restarts.possiblereplay", "restarts: possible replays"),
            metric("txn.restarts.asyncwritefailure", "restarts: asynchronous writes left no intents"),
            metric("txn.restarts.commitdeadlineexceeded", "restarts: deadline of the commit exceeded"),
            metric(
                "txn.restarts.readwithinuncertainty",
                "restarts: a new value within the uncertainty interval",
            ),
            metric("txn.restarts.txnaborted", "restarts: aborted by a concurrent transaction"),
            metric("txn.restarts.txnpush", "restarts: a push of another transaction failed"),
            metric("txn.restarts.unknown", "restarts: unknown reasons"),
            metric("sql.txn.commit.count", "SQL COMMIT statements"),
            metric("sql.txn.rollback.count", "SQL ROLLBACK statements"),
            metric("sql.txn.contended.count", "SQL transactions that met contention"),
            metric("txn.refresh.success", "refreshes that moved a transaction's timestamp forward"),
            metric("txn.refresh.fail", "refreshes that failed, so that the transaction has to be repeated"),
            metric("sql.txn.abort.count", "SQL transactions ended by an error"),
            // Since v23.2.3 (cockroachdb/docs, issue 18374).
            metric(
                "sql.txn.upgraded_iso_level.count",
                "SQL transactions of all clients that ran at a higher level than the one they asked for",
            ),
        ],
    },
    CounterView {
        name: "crdb_internal.cluster_contention_events",
        versions: 21..=ON,
        row: None,
        from: "from crdb_internal.cluster_contention_events",
        columns: &[sum("num_contention_events", "contention events that the cluster remembers")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_version_has_every_counter_once() {
        for version in 11..=19 {
            let mut names = BTreeSet::new();
            for view in POSTGRESQL_VIEWS.iter().filter(|view| view.versions.contains(&version)) {
                for column in view.columns {
                    assert!(
                        names.insert((view.name, column.name)),
                        "{version}: {}.{}",
                        view.name,
                        column.name
                    );
                }
            }
            assert!(names.len() > 20);
        }
    }

    #[test]
    fn the_manual_has_every_view() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/server-side.md");
        let page = std::fs::read_to_string(page).unwrap();
        for view in POSTGRESQL_VIEWS.iter().chain(&COCKROACHDB_VIEWS) {
            assert!(page.contains(&format!("`{}`", view.name)), "{} isn't in the manual", view.name);
        }
    }

    #[test]
    fn queries_name_the_row_first() {
        let find = |name| POSTGRESQL_VIEWS.iter().find(|view| view.name == name).unwrap().query();
        assert!(find("pg_stat_lock").starts_with("select locktype, sum(waits), "));
        assert!(find("pg_stat_lock").ends_with("from pg_catalog.pg_stat_lock group by 1"));
        assert!(find("pg_stat_wal").starts_with("select wal_records, wal_fpi"));
        assert!(
            COCKROACHDB_VIEWS[0]
                .query()
                .starts_with("select sum(case when name = 'txn.commits' then value end), ")
        );
    }
}
