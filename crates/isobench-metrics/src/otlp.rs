//! Metrics as a request of OTLP/HTTP in JSON (OpenTelemetry Protocol 1.0, "JSON Protobuf Encoding":
//! 64-bit integers are strings, enumerations numbers).
//!
//! Not here: how it is sent (`collector`).

use std::time::{SystemTime, UNIX_EPOCH};

use isobench_stats::{LATENCY_BOUNDS_US, seconds};
use serde_json::{Value as Json, json};

use crate::catalogue::Kind;
use crate::family::{Family, Point, families};
use crate::meter::{Attributes, Meter};
use crate::value::Value;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: since the start, not since the last push.
const CUMULATIVE: u32 = 2;

/// The metrics as they are now, of this `instance` of the program.
pub(crate) fn request(meter: &Meter, instance: &str) -> Json {
    let times = (nanoseconds(meter.began()), nanoseconds(SystemTime::now()));
    request_at(&families(&meter.copy()), &times, instance)
}

fn request_at(families: &[Family], times: &(String, String), instance: &str) -> Json {
    let shown = families.iter().filter(|family| !family.points.is_empty());
    let metrics: Vec<Json> = shown.map(|family| metric(family, times)).collect();
    let (name, version) = ("isobench", env!("CARGO_PKG_VERSION"));
    let resource = vec![
        ("service.name", name.to_owned()),
        ("service.version", version.to_owned()),
        ("service.instance.id", instance.to_owned()),
    ];
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeMetrics": [{"scope": {"name": name, "version": version}, "metrics": metrics}],
    }]})
}

/// A metric whose values were counted from the first of these times to the second.
fn metric(Family { metric, points }: &Family, times: &(String, String)) -> Json {
    let points: Vec<Json> = points.iter().map(|point| data_point(point, times)).collect();
    let (kind, data) = match metric.kind {
        Kind::Counter => {
            let sum =
                json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points});
            ("sum", sum)
        }
        Kind::Gauge => ("gauge", json!({"dataPoints": points})),
        Kind::Histogram => ("histogram", json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points})),
    };
    json!({"name": metric.name, "description": metric.help, "unit": metric.unit, kind: data})
}

fn data_point(point: &Point, (began, now): &(String, String)) -> Json {
    let mut found = json!({
        "attributes": attributes(&point.attributes),
        "startTimeUnixNano": began,
        "timeUnixNano": now,
    });
    match point.value {
        Value::Count(count) => found["asInt"] = json!(count.to_string()),
        Value::Seconds(seconds) => found["asDouble"] = json!(seconds),
        Value::Latencies(latencies) => {
            let bounds = LATENCY_BOUNDS_US.map(|bound| seconds(bound * 1_000));
            found["count"] = json!(latencies.count().to_string());
            found["sum"] = json!(seconds(latencies.sum_ns));
            found["bucketCounts"] = json!(latencies.counts.map(|count| count.to_string()));
            found["explicitBounds"] = json!(bounds);
        }
    }
    found
}

fn attributes(attributes: &Attributes) -> Json {
    attributes.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

/// A time in nanoseconds since 1970.
fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use isobench_testkit::golden;

    use super::*;
    use crate::family::tests::seen;

    /// The golden file was decoded with OpenTelemetry's own types (opentelemetry-proto 0.33.1) when it
    /// was written: every number and attribute arrived. They aren't a dependency, because they bring
    /// two dozen packages.
    #[test]
    fn a_request_of_every_metric() {
        let times = ("1790000000000000001".to_owned(), "1790000005000000002".to_owned());
        let request = request_at(&families(&seen().copy()), &times, "host:7");
        let text = serde_json::to_string_pretty(&request).expect("JSON");
        // The version changes with each release.
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n";
        golden::expect(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/otlp.json"), &text);
    }

    #[test]
    fn times_are_those_of_the_meter() {
        let request = request(&seen(), "host:7");
        let point =
            &request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["histogram"]["dataPoints"][0];
        let time = |name: &str| point[name].as_str().and_then(|text| text.parse::<u128>().ok()).expect(name);
        let (began, now) = (time("startTimeUnixNano"), time("timeUnixNano"));
        assert!(0 < began && began <= now);
    }
}
