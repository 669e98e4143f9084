//! The tables of live metrics are those of the program.

use std::fmt::Write as _;

use isobench_metrics::{ATTRIBUTES, Kind, METRICS};
use isobench_testkit::golden;

use crate::markdown::{page, root};

const PAGE: &str = "reference/metrics.md";

#[test]
fn tables_of_live_metrics_are_those_of_the_program() {
    let mut text = page(PAGE);
    golden::fill_with(&mut text, "live-metrics", &metrics());
    golden::fill_with(&mut text, "live-attributes", &attributes());
    golden::expect(root().join("docs").join(PAGE), &text);
}

fn metrics() -> String {
    let head = "| OpenTelemetry | Prometheus | kind | unit | split by | is |\n|---|---|---|---|---|---|\n";
    METRICS.iter().fold(head.to_owned(), |mut table, metric| {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let split = metric.split.map_or_else(
            || "–".to_owned(),
            |(name, values)| {
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                format!("`{name}`: {}", values.join(", "))
            },
        );
        let (name, prometheus) = (metric.name, metric.prometheus());
        writeln!(
            table,
            "| `{name}` | `{prometheus}` | {kind} | `{}` | {split} | {} |",
            metric.unit, metric.help
        )
        .expect("writes");
        table
    })
}

fn attributes() -> String {
    ATTRIBUTES.iter().fold("| attribute | is |\n|---|---|\n".to_owned(), |mut table, (name, meaning)| {
        writeln!(table, "| `{name}` | {meaning} |").expect("writes");
        table
    })
}
