//! Metrics as text in the OpenMetrics format, version 1.0.
//!
//! Not here: how it is served (`endpoint`).

use std::fmt::Write as _;

use isobench_stats::{LATENCY_BOUNDS_US, LatencyCounts, seconds};

use crate::catalogue::{Kind, prometheus_label};
use crate::family::{Family, Point, families};
use crate::meter::Meter;
use crate::value::Value;

/// The type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics as they are now.
pub(crate) fn text(meter: &Meter) -> String {
    let families = families(&meter.copy());
    let text: String = families.iter().filter(|family| !family.points.is_empty()).map(family_text).collect();
    text + "# EOF\n"
}

/// A metric's description and its samples. The names of a counter's samples end in `_total`; in the
/// description they don't.
fn family_text(Family { metric, points }: &Family) -> String {
    let sample = metric.prometheus();
    let name = sample.trim_end_matches("_total");
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let unit = if metric.is_seconds() { format!("# UNIT {name} seconds\n") } else { String::new() };
    let samples = |Point { attributes, value }: &Point| {
        let labels = labels(attributes);
        match value {
            Value::Count(count) => format!("{sample}{{{labels}}} {count}\n"),
            Value::Seconds(seconds) => format!("{sample}{{{labels}}} {}\n", number(*seconds)),
            Value::Latencies(latencies) => histogram(name, &labels, latencies),
        }
    };
    let samples: String = points.iter().map(samples).collect();
    format!("# HELP {name} {}\n# TYPE {name} {kind}\n{unit}{samples}", metric.help)
}

/// The samples of a histogram, whose buckets hold all that is below their bounds.
fn histogram(name: &str, labels: &str, latencies: &LatencyCounts) -> String {
    let LatencyCounts { counts, sum_ns } = latencies;
    let (sum, count) = (number(seconds(*sum_ns)), latencies.count());
    let mut text = format!("{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}\n");
    let bounds = LATENCY_BOUNDS_US.iter().map(|bound| number(seconds(bound * 1_000)));
    let mut below = 0;
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
        below += count;
        // Writing to a String can't fail.
        let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\",{labels}}} {below}");
    }
    text
}

/// A number with a decimal point.
fn number(value: f64) -> String {
    let text = value.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

fn labels(attributes: &[(&str, String)]) -> String {
    let label = |(name, value): &(&str, String)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", prometheus_label(name))
    };
    attributes.iter().map(label).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use isobench_testkit::golden;

    use super::*;
    use crate::catalogue::METRICS;
    use crate::family::tests::seen;

    #[test]
    fn the_text_has_every_sample_of_the_catalogue_and_an_end() {
        let text = text(&seen());
        for metric in &METRICS {
            for sample in metric.samples() {
                assert!(text.contains(&format!("\n{sample}{{")), "{sample} in\n{text}");
            }
        }
        assert!(text.ends_with("\n# EOF\n"));
        for line in [
            "# TYPE db_client_operation_duration_seconds histogram",
            "# UNIT db_client_operation_duration_seconds seconds",
            "# TYPE isobench_attempts counter",
            "# TYPE isobench_client_time_seconds counter",
            "# TYPE isobench_round gauge",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn the_text_is_as_expected() {
        let text = text(&seen());
        golden::expect(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/openmetrics.txt"), &text);
    }

    #[test]
    fn values_and_escaped_labels() {
        let text = text(&seen());
        let labels = "db_system_name=\"db \\\"it\\\"\",db_namespace=\"db \\\"it\\\"\",isobench_cell=\"is \\\"it\\\"\",\
                      isobench_level=\"is \\\"it\\\"\",isobench_workload=\"is \\\"it\\\"\",isobench_phase=\"is \
                      \\\"it\\\"\"";
        for (name, more, value) in [
            ("isobench_attempts_total", ",isobench_outcome=\"errored\"", "4"),
            ("isobench_transactions_total", ",isobench_outcome=\"skipped\"", "7"),
            ("isobench_retries_total", "", "13"),
            ("isobench_conflicts_total", ",error_type=\"serialization_failure\"", "12"),
            ("isobench_conflicts_total", ",error_type=\"deadlock_detected\"", "5"),
            ("isobench_late_total", "", "8"),
            ("isobench_client_time_seconds_total", ",isobench_use=\"wasted\"", "0.25"),
            ("isobench_clients", "", "16"),
            ("isobench_round", "", "2"),
            ("db_client_operation_duration_seconds_count", ",db_operation_name=\"transaction\"", "51"),
            ("db_client_operation_duration_seconds_sum", ",db_operation_name=\"transaction\"", "60.123"),
        ] {
            let line = format!("{name}{{{labels}{more}}} {value}");
            assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
        }
        for (bound, count) in [("0.00005", 20), ("0.002", 20), ("0.005", 50), ("50.0", 50), ("+Inf", 51)] {
            let end = format!("le=\"{bound}\",{labels},db_operation_name=\"transaction\"}} {count}");
            assert!(text.lines().any(|found| found.ends_with(&end)), "{end}\nin\n{text}");
        }
    }
}
