//! The values of each metric at an instant: what both the text for Prometheus and the JSON for
//! OpenTelemetry are made of.

use std::collections::BTreeMap;

use isobench_runner::RunProgress;

use crate::catalogue::{METRICS, Metric};
use crate::meter::{Attributes, Counted};
use crate::value::Value;

/// A metric with its values.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    pub(crate) metric: &'static Metric,
    pub(crate) points: Vec<Point>,
}

/// A value, and what it is about.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) attributes: Attributes,
    pub(crate) value: Value,
}

/// All metrics of what was counted, in the order of the catalogue; those without a value have no
/// points.
pub(crate) fn families(counted: &BTreeMap<Attributes, Counted>) -> Vec<Family> {
    let all: Vec<(&Attributes, RunProgress, &Counted)> =
        counted.iter().map(|(attributes, counted)| (attributes, counted.total(), counted)).collect();
    let family = |metric: &'static Metric| {
        let points = all.iter().flat_map(|(attributes, total, counted)| {
            let values = (metric.values)(total, counted.working);
            let names = metric.split.map_or(&[""][..], |(_, names)| names);
            names.iter().zip(values).map(|(name, value)| {
                let split = metric.split.map(|(attribute, _)| (attribute, (*name).to_owned()));
                Point { attributes: attributes.iter().cloned().chain(split).collect(), value }
            })
        });
        Family { metric, points: points.collect() }
    };
    METRICS.iter().map(family).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::catalogue::ATTRIBUTES;
    use crate::meter::{Meter, Working};
    use isobench_stats::{Attempts, Ledger, TimeLedger, Transactions};

    /// A meter that has seen a cell in which no two figures are alike.
    pub(crate) fn seen() -> Meter {
        let mut progress = RunProgress { serialization_failures: 12, deadlocks: 5, ..RunProgress::default() };
        progress.ledger = Ledger {
            attempts: Attempts {
                started: 111,
                committed: 51,
                retried: 12,
                given_up: 6,
                swallowed: 3,
                rolled_back: 11,
                ambiguous: 2,
                cut_off: 1,
                errored: 4,
            },
            transactions: Transactions {
                total: 91,
                committed: 51,
                given_up: 6,
                swallowed: 3,
                rolled_back: 11,
                ambiguous: 2,
                cut_off: 9,
                errored: 4,
                skipped: 7,
            },
            time: TimeLedger { useful: 1_500_000_000, wasted: 250_000_000, backoff: 125_000_000, waiting: 1 },
            conflicts: 17,
            further_errors: 10,
            retries: 13,
            late: 8,
        };
        progress.latencies.counts[0] = 20;
        progress.latencies.counts[6] = 30;
        progress.latencies.counts[19] = 1;
        progress.latencies.sum_ns = 60_123_000_000;
        let meter = Meter::default();
        let attributes = ATTRIBUTES.map(|(name, _)| (name, format!("{} \"it\"", &name[..2])));
        meter.see(&attributes.to_vec(), Working { round: 2, clients: 16 }, &progress);
        meter
    }

    #[test]
    fn every_metric_has_a_value_for_each_part() {
        for family in families(&seen().copy()) {
            let parts = family.metric.split.map_or(1, |(_, names)| names.len());
            assert_eq!(family.points.len(), parts, "{}", family.metric.name);
        }
    }

    #[test]
    fn gauges_disappear_with_what_they_describe() {
        let meter = seen();
        meter.only(&[]);
        let families = families(&meter.copy());
        let gone: Vec<&str> = families
            .iter()
            .filter(|family| family.points.is_empty())
            .map(|family| family.metric.name)
            .collect();
        assert_eq!(gone, ["isobench.clients", "isobench.round"]);
    }
}
