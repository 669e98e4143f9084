//! Every metric, as a table: names, units, kinds, and what is counted from when to when. Names and
//! attributes follow OpenTelemetry's semantic conventions where these have one (registry version
//! 1.37, "Database"); the others begin with `isobench.`.
//!
//! The manual's table (`docs/reference/metrics.md`) is generated from this one.

use isobench_runner::RunProgress;

use crate::meter::Working;
use crate::value::{self, Value};

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never becomes smaller while the command runs.
    Counter,
    /// May become smaller, and disappears with what it describes.
    Gauge,
    /// Counts between fixed bounds and their sum, none of which ever becomes smaller.
    Histogram,
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// The name in OpenTelemetry.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The unit in OpenTelemetry (UCUM): `s`, or what is counted in braces.
    pub unit: &'static str,
    /// What is counted, from when to when.
    pub help: &'static str,
    /// The attribute by which it is split, besides those of the cell, and its values.
    pub split: Option<(&'static str, &'static [&'static str])>,
    /// Its values, in the order of those of the attribute; none while there is nothing to describe.
    pub(crate) values: fn(&RunProgress, Option<Working>) -> Vec<Value>,
}

/// Attribute: the product of the server, by OpenTelemetry's names.
pub const SYSTEM: &str = "db.system.name";
/// Attribute: the database named when sessions are opened.
pub const NAMESPACE: &str = "db.namespace";
/// Attribute: the cell's name, as in the table of results.
pub const CELL: &str = "isobench.cell";
/// Attribute: the isolation level that sessions ask for.
pub const LEVEL: &str = "isobench.level";
/// Attribute: the workload's name.
pub const WORKLOAD: &str = "isobench.workload";
/// Attribute: the phase.
pub const PHASE: &str = "isobench.phase";

/// The attributes of every metric, and what they mean.
pub const ATTRIBUTES: [(&str, &str); 6] = [
    (
        SYSTEM,
        "the product of the server: postgresql, cockroachdb, yugabytedb, h2database, or other_sql for others",
    ),
    (NAMESPACE, "the database named when sessions are opened, without a schema"),
    (CELL, "the cell's name, as in the table of results"),
    (LEVEL, "the isolation level that its sessions ask for; `default` if they ask for none"),
    (WORKLOAD, "its workload: the name of a checked one, or of the scripts"),
    (PHASE, "`warmup`, which no result contains, or `measurement`"),
];

const OUTCOME: &str = "isobench.outcome";

/// Every metric.
pub static METRICS: [Metric; 9] = [
    Metric {
        name: "db.client.operation.duration",
        kind: Kind::Histogram,
        unit: "s",
        help: "Latency of committed transactions, from the scheduled start (unpaced: the first attempt's \
               start) to the reply to COMMIT, with all attempts and backoff.",
        split: Some(("db.operation.name", &["transaction"])),
        values: value::latencies,
    },
    Metric {
        name: "isobench.attempts",
        kind: Kind::Counter,
        unit: "{attempt}",
        help: "Attempts, counted at their end, by outcome: swallowed is acknowledged with its work undone, \
               ambiguous is unknown, cut_off is stopped by the end of the run, errored isn't retried.",
        split: Some((
            OUTCOME,
            &[
                "committed",
                "retried",
                "given_up",
                "swallowed",
                "rolled_back",
                "ambiguous",
                "cut_off",
                "errored",
            ],
        )),
        values: value::attempts,
    },
    Metric {
        name: "isobench.transactions",
        kind: Kind::Counter,
        unit: "{transaction}",
        help: "Transactions, counted at the end of their last attempt, with its outcome; skipped: never \
               started, because it was too late.",
        split: Some((
            OUTCOME,
            &[
                "committed",
                "given_up",
                "swallowed",
                "rolled_back",
                "ambiguous",
                "cut_off",
                "errored",
                "skipped",
            ],
        )),
        values: value::transactions,
    },
    Metric {
        name: "isobench.retries",
        kind: Kind::Counter,
        unit: "{attempt}",
        help: "Attempts after the first of their transaction, by the client or inside the server, counted \
               at their start.",
        split: None,
        values: value::retries,
    },
    Metric {
        name: "isobench.conflicts",
        kind: Kind::Counter,
        unit: "{attempt}",
        help: "Attempts that ended in a conflict, counted at the server's error: deadlock_detected (40P01), \
               or serialization_failure (40001 and the product's others).",
        split: Some(("error.type", &["serialization_failure", "deadlock_detected"])),
        values: value::conflicts,
    },
    Metric {
        name: "isobench.late",
        kind: Kind::Counter,
        unit: "{transaction}",
        help: "Committed transactions above the latency limit (--latency-limit).",
        split: None,
        values: value::late,
    },
    Metric {
        name: "isobench.client.time",
        kind: Kind::Counter,
        unit: "s",
        help: "Time of all clients by use: useful (attempts that committed or were to be rolled back), \
               wasted (other attempts), backoff (between attempts), waiting (for the next transaction to be \
               due).",
        split: Some(("isobench.use", &["useful", "wasted", "backoff", "waiting"])),
        values: value::client_time,
    },
    Metric {
        name: "isobench.clients",
        kind: Kind::Gauge,
        unit: "{client}",
        help: "Clients of the cell under way; of cells that take turns, of each. Absent while none is under \
               way.",
        split: None,
        values: value::clients,
    },
    Metric {
        name: "isobench.round",
        kind: Kind::Gauge,
        unit: "1",
        help: "The cell's round, from 1; a search for the highest rate counts on. Absent as \
               isobench.clients.",
        split: None,
        values: value::round,
    },
];

impl Metric {
    /// The name in Prometheus, as OpenTelemetry translates it: of a counter with `_total`; of a
    /// histogram without its suffixes.
    pub fn prometheus(&self) -> String {
        let unit = if self.is_seconds() { "_seconds" } else { "" };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", prometheus_label(self.name))
    }

    /// The names of its samples in Prometheus.
    pub fn samples(&self) -> Vec<String> {
        let name = self.prometheus();
        match self.kind {
            Kind::Histogram => ["bucket", "sum", "count"].map(|suffix| format!("{name}_{suffix}")).to_vec(),
            Kind::Counter | Kind::Gauge => vec![name],
        }
    }

    /// Whether it is a time.
    pub(crate) fn is_seconds(&self) -> bool {
        self.unit == "s"
    }
}

/// The name of an attribute in Prometheus, where it is a label.
pub fn prometheus_label(attribute: &str) -> String {
    attribute.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_prometheus() {
        let names = METRICS.iter().map(Metric::prometheus).collect::<Vec<_>>();
        assert_eq!(
            names,
            [
                "db_client_operation_duration_seconds",
                "isobench_attempts_total",
                "isobench_transactions_total",
                "isobench_retries_total",
                "isobench_conflicts_total",
                "isobench_late_total",
                "isobench_client_time_seconds_total",
                "isobench_clients",
                "isobench_round",
            ]
        );
        assert_eq!(METRICS[0].samples()[1], "db_client_operation_duration_seconds_sum");
    }

    #[test]
    fn help_is_a_line() {
        for metric in &METRICS {
            assert!(
                !metric.help.contains(['\n', '\\', '"']) && metric.help.ends_with('.'),
                "{}",
                metric.name
            );
        }
    }
}
