//! The dashboard and the names in it: every metric and label of its queries exists, and every metric
//! is on it.

use isobench_metrics::{ATTRIBUTES, METRICS, Metric, prometheus_label};
use serde_json::Value;

const DASHBOARD: &str = include_str!("../../../examples/monitoring/grafana-dashboard.json");

/// The queries and legends of all panels.
fn texts(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == key => found.push(text.clone()),
                    _ => texts(member, key, found),
                }
            }
        }
        Value::Array(members) => members.iter().for_each(|member| texts(member, key, found)),
        _ => {}
    }
}

/// The words of a text that look like names of ours.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| ["isobench_", "db_", "error_"].iter().any(|start| word.starts_with(start)))
}

#[test]
fn every_name_in_the_dashboard_exists() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let (mut queries, mut legends) = (Vec::new(), Vec::new());
    texts(&dashboard, "expr", &mut queries);
    texts(&dashboard, "legendFormat", &mut legends);
    assert!(queries.len() > 8 && legends.len() == queries.len());
    let samples: Vec<String> = METRICS.iter().flat_map(Metric::samples).collect();
    let attributes = ATTRIBUTES.iter().map(|(name, _)| *name);
    let splits = METRICS.iter().filter_map(|metric| metric.split).map(|(name, _)| name);
    let labels: Vec<String> = attributes.chain(splits).map(prometheus_label).collect();
    for name in queries.iter().flat_map(|query| names(query)) {
        assert!(samples.iter().chain(&labels).any(|known| known == name), "{name} is in a query");
    }
    for name in legends.iter().flat_map(|legend| names(legend)) {
        assert!(labels.iter().any(|known| known == name), "{name} is in a legend");
    }
    for sample in &samples {
        let shown = queries.iter().any(|query| names(query).any(|name| name == sample));
        assert!(shown, "{sample} is in no query");
    }
    for metric in &METRICS {
        let values = metric.split.map_or(&[][..], |(_, values)| values);
        let label = metric.split.map(|(name, _)| format!("{}=\"", prometheus_label(name)));
        for query in queries.iter().filter(|query| metric.samples().iter().any(|name| query.contains(name))) {
            let Some((_, rest)) = label.as_ref().and_then(|label| query.split_once(label)) else { continue };
            let value = rest.split('"').next().expect("a value");
            assert!(values.contains(&value), "{value} in {query}");
        }
    }
}
