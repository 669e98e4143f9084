//! One line per round and cell, for spreadsheets and scripts.
//!
//! Comma-separated values of RFC 4180 with a line of titles; empty where there is no value. What a
//! pair or a series has, too, has the same title there. Not here: summaries.

use std::collections::BTreeMap;

use isobench_stats::seconds;

use crate::document::{Cell, Document, Round, ServerSide, Verdict};

/// The first titles of the first line.
pub fn titles(count: usize) -> String {
    COLUMNS.iter().take(count).map(|(title, _)| *title).collect::<Vec<_>>().join(",")
}

/// A column: its title and its value.
type CsvColumn = (&'static str, fn(&Document, &Cell, &Round) -> String);

static COLUMNS: [CsvColumn; 70] = [
    ("product", |document, _, _| document.server.product.clone()),
    ("server_version", |document, cell, _| document.server_of(cell).version.clone()),
    ("measurement_version", |document, _, _| document.measurement_version.to_string()),
    ("workload", |_, cell, _| cell.workload.clone()),
    ("scale", |_, cell, _| cell.scale.to_string()),
    ("clients", |_, cell, _| cell.clients.to_string()),
    ("jobs", |_, cell, _| cell.jobs.to_string()),
    ("protocol", |_, cell, _| cell.protocol.clone()),
    ("backoff", |_, cell, _| cell.backoff.clone()),
    ("rate", |_, cell, _| number(cell.rate)),
    ("strategy", |_, cell, _| cell.strategy().to_owned()),
    ("varied", |_, cell, _| varied(cell)),
    ("calibration", |_, cell, _| cell.calibration.to_string()),
    ("level", |_, cell, _| cell.level.name()),
    ("level_effective", |_, cell, _| cell.level.effective.to_string()),
    ("round", |_, _, round| round.round.to_string()),
    ("order", |_, _, round| optional(round.order)),
    ("complete", |_, _, round| round.complete.to_string()),
    ("seconds", |_, _, round| number(Some(round.seconds))),
    ("tps", |_, _, round| number(round.tps)),
    ("attempts_started", |_, _, round| round.attempts.started.to_string()),
    ("attempts_committed", |_, _, round| round.attempts.committed.to_string()),
    ("attempts_retried", |_, _, round| round.attempts.retried.to_string()),
    ("attempts_given_up", |_, _, round| round.attempts.given_up.to_string()),
    ("attempts_swallowed", |_, _, round| round.attempts.swallowed.to_string()),
    ("attempts_rolled_back", |_, _, round| round.attempts.rolled_back.to_string()),
    ("attempts_ambiguous", |_, _, round| round.attempts.ambiguous.to_string()),
    ("attempts_cut_off", |_, _, round| round.attempts.cut_off.to_string()),
    ("attempts_errored", |_, _, round| round.attempts.errored.to_string()),
    ("transactions_total", |_, _, round| round.transactions.total.to_string()),
    ("transactions_committed", |_, _, round| round.transactions.committed.to_string()),
    ("transactions_given_up", |_, _, round| round.transactions.given_up.to_string()),
    ("transactions_swallowed", |_, _, round| round.transactions.swallowed.to_string()),
    ("transactions_rolled_back", |_, _, round| round.transactions.rolled_back.to_string()),
    ("transactions_ambiguous", |_, _, round| round.transactions.ambiguous.to_string()),
    ("transactions_cut_off", |_, _, round| round.transactions.cut_off.to_string()),
    ("transactions_errored", |_, _, round| round.transactions.errored.to_string()),
    ("transactions_skipped", |_, _, round| round.transactions.skipped.to_string()),
    ("conflicts", |_, _, round| round.ledger().conflicts.to_string()),
    ("useful_s", |_, _, round| number(Some(seconds(round.time_s.useful)))),
    ("wasted_s", |_, _, round| number(Some(seconds(round.time_s.wasted)))),
    ("backoff_s", |_, _, round| number(Some(seconds(round.time_s.backoff)))),
    ("waiting_s", |_, _, round| number(Some(seconds(round.time_s.waiting)))),
    ("latency_mean_ms", |_, _, round| number(round.latency_ms.mean)),
    ("latency_stddev_ms", |_, _, round| number(round.latency_ms.stddev)),
    ("latency_p50_ms", |_, _, round| number(round.latency_ms.p50)),
    ("latency_p90_ms", |_, _, round| number(round.latency_ms.p90)),
    ("latency_p95_ms", |_, _, round| number(round.latency_ms.p95)),
    ("latency_p99_ms", |_, _, round| number(round.latency_ms.p99)),
    ("latency_p999_ms", |_, _, round| number(round.latency_ms.p999)),
    ("latency_p9999_ms", |_, _, round| number(round.latency_ms.p9999)),
    ("latency_max_ms", |_, _, round| number(round.latency_ms.max)),
    ("late", |_, _, round| optional(round.late)),
    ("invariants_held", |_, _, round| invariants_held(round)),
    ("violations", |_, _, round| round.violations().to_string()),
    ("violations_unit", |_, _, round| {
        optional(round.violated().and_then(|invariant| invariant.unit.as_deref()))
    }),
    ("promised", |_, _, round| verdict(round, |verdict| verdict.promised.clone())),
    ("promise_kept", |_, _, round| verdict(round, |verdict| verdict.kept.map(|kept| kept.to_string()))),
    ("not_contradicted", |_, _, round| verdict(round, |verdict| Some(verdict.not_contradicted.join("; ")))),
    ("anomalies", |_, _, round| verdict(round, |verdict| Some(verdict.anomalous().to_string()))),
    ("errors", |_, _, round| round.errors.len().to_string()),
    ("client_cpu_s", |_, _, round| number(round.client_cpu_s)),
    ("connect_s", |_, _, round| number(round.connect_s)),
    ("client_busiest", |_, _, round| number(round.client.map(|client| client.busiest))),
    ("client_share_of_cores", |_, _, round| number(round.client.map(|client| client.share_of_cores))),
    ("client_lag_p99_ms", |_, _, round| number(round.client.and_then(|client| client.lag_p99_ms))),
    ("server_cpu_s", |_, _, round| {
        number(round.server.as_ref().and_then(|server| server.processes).map(|processes| processes.cpu_s))
    }),
    ("predicate_locks", |_, _, round| {
        optional(round.server.as_ref().and_then(ServerSide::most_predicate_locks))
    }),
    ("warmup_s", |_, _, round| number(round.warmup.map(|warmup| warmup.seconds))),
    ("warmup_steady", |_, _, round| optional(round.warmup.and_then(|warmup| warmup.steady))),
];

/// Renders every round of every cell as a line of comma-separated values, titles first.
pub fn to_csv(document: &Document) -> String {
    let mut text = line(COLUMNS.iter().map(|(title, _)| (*title).to_owned()));
    for cell in &document.cells {
        for round in &cell.rounds {
            text += &line(COLUMNS.iter().map(|(_, value)| value(document, cell, round)));
        }
    }
    text
}

/// The parameters of a cell that the plan varies.
pub fn varied(cell: &Cell) -> String {
    assignments(&cell.varied)
}

/// Names with their values: "foreign-keys=on;rows=1000".
pub fn assignments(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}

/// A line of fields, quoted where they need it.
pub fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quote(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A number with every digit; empty if there is none.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Empty if no history was recorded.
fn verdict(round: &Round, show: fn(&Verdict) -> Option<String>) -> String {
    round.verdict.as_ref().and_then(show).unwrap_or_default()
}

/// Empty if there was nothing to check, or not everything could be.
fn invariants_held(round: &Round) -> String {
    if round.is_violated() {
        return "false".to_owned();
    }
    let held = round.invariants.iter().all(|invariant| invariant.held == Some(true));
    if held && !round.invariants.is_empty() { "true".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn fields_with_commas_or_quotes_are_quoted() {
        assert_eq!(quote("a b"), "a b");
        assert_eq!(quote("fixed:1ms,\"x\""), "\"fixed:1ms,\"\"x\"\"\"");
    }
}
