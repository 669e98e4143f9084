//! Metrics as text in the OpenMetrics format, version 1.0.
//!
//! Not here: how it is served (`endpoint`).

use std::collections::HashMap;
use std::fmt;

use isobench_stats::{LATENCY_BOUNDS_US, LatencyCounts, seconds};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use crate::catalogue::{Kind, Metric, prometheus_label};
use crate::family::{Family, Point, Value, families};
use crate::meter::Meter;

/// The type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of an instant.
#[derive(Debug)]
struct Instant(Vec<Family>);

/// The metrics as they are now.
///
/// # Errors
/// Never with the metrics of the catalogue.
pub(crate) fn text(meter: &Meter) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Instant(families(&meter.copy()))));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for Instant {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Family { metric, points } in self.0.iter().filter(|family| !family.points.is_empty()) {
            // Counters and times get their suffixes from the encoder.
            let unit = metric.is_seconds().then_some(Unit::Seconds);
            let name = prometheus_label(metric.name);
            let mut encoder = encoder.encode_descriptor(&name, metric.help, unit.as_ref(), kind(metric))?;
            points.iter().try_for_each(|point| encode_point(&mut encoder, metric, point))?;
        }
        Ok(())
    }
}

fn kind(metric: &Metric) -> MetricType {
    match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    }
}

fn encode_point(encoder: &mut MetricEncoder<'_>, metric: &Metric, point: &Point) -> fmt::Result {
    let labels: Vec<(String, String)> =
        point.attributes.iter().map(|(name, value)| (prometheus_label(name), value.clone())).collect();
    let mut encoder = encoder.encode_family(&labels)?;
    let no_example: Option<&Exemplar<NoLabelSet, f64>> = None;
    match point.value {
        Value::Count(count) if metric.kind == Kind::Gauge => {
            encoder.encode_gauge(&i64::try_from(count).unwrap_or(i64::MAX))
        }
        Value::Count(count) => encoder.encode_counter(&count, no_example),
        Value::Seconds(seconds) => encoder.encode_counter(&seconds, no_example),
        Value::Latencies(latencies) => {
            let LatencyCounts { counts, sum_ns } = latencies;
            let bounds = LATENCY_BOUNDS_US.iter().map(|bound| seconds(bound * 1_000)).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
            let no_examples: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
            encoder.encode_histogram(seconds(sum_ns), latencies.count(), &buckets, no_examples)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::METRICS;
    use crate::family::tests::seen;

    #[test]
    fn the_text_has_every_sample_of_the_catalogue_and_an_end() {
        let text = text(&seen()).expect("text");
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
    fn values_and_escaped_labels() {
        let text = text(&seen()).expect("text");
        let labels = "db_system_name=\"db \\\"it\\\"\",db_namespace=\"db \\\"it\\\"\",isobench_cell=\"is \\\"it\\\"\",\
                      isobench_level=\"is \\\"it\\\"\",isobench_workload=\"is \\\"it\\\"\",isobench_phase=\"is \\\"it\\\"\"";
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
