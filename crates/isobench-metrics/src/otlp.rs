//! Metrics as a request of OTLP/HTTP in JSON (OpenTelemetry Protocol 1.0, "JSON Protobuf Encoding":
//! 64-bit integers are strings, enumerations numbers).
//!
//! Not here: how it is sent (`collector`).

use std::time::{SystemTime, UNIX_EPOCH};

use isobench_stats::{LATENCY_BOUNDS_US, seconds};
use serde_json::{Value as Json, json};

use crate::catalogue::Kind;
use crate::family::{Family, Point, Value, families};
use crate::meter::{Attributes, Meter};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: since the start, not since the last push.
const CUMULATIVE: u32 = 2;

/// The metrics as they are now, of this `instance` of the program.
pub(crate) fn request(meter: &Meter, instance: &str) -> Json {
    let times = (nanoseconds(meter.began()), nanoseconds(SystemTime::now()));
    let families = families(&meter.copy());
    let metrics: Vec<Json> = families
        .iter()
        .filter(|family| !family.points.is_empty())
        .map(|family| metric(family, &times))
        .collect();
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
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
    use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point};

    use super::*;
    use crate::catalogue::METRICS;
    use crate::family::tests::seen;

    fn value(attributes: &[KeyValue], key: &str) -> Option<String> {
        let found = attributes.iter().find(|attribute| attribute.key == key)?;
        match found.value.clone()?.value? {
            any_value::Value::StringValue(text) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn opentelemetry_decodes_it() {
        let bytes = request(&seen(), "host:7").to_string();
        let decoded: ExportMetricsServiceRequest = serde_json::from_str(&bytes).expect("a request");
        let [of_resource] = &decoded.resource_metrics[..] else { panic!("{decoded:?}") };
        let resource = of_resource.resource.as_ref().expect("a resource");
        assert_eq!(value(&resource.attributes, "service.name").as_deref(), Some("isobench"));
        assert_eq!(value(&resource.attributes, "service.instance.id").as_deref(), Some("host:7"));
        let metrics = &of_resource.scope_metrics[0].metrics;
        assert_eq!(metrics.len(), METRICS.len());
        for (found, expected) in metrics.iter().zip(&METRICS) {
            assert_eq!((&*found.name, &*found.unit), (expected.name, expected.unit));
        }
        let Some(Data::Histogram(latency)) = &metrics[0].data else { panic!("{metrics:?}") };
        let point = &latency.data_points[0];
        assert_eq!((latency.aggregation_temporality, point.count, point.sum), (2, 51, Some(60.123)));
        assert_eq!((point.bucket_counts.len(), point.explicit_bounds.len()), (20, 19));
        assert_eq!((point.bucket_counts[6], point.explicit_bounds[6]), (30, 0.005));
        assert!(0 < point.start_time_unix_nano && point.start_time_unix_nano <= point.time_unix_nano);
        let Some(Data::Sum(attempts)) = &metrics[1].data else { panic!("{metrics:?}") };
        assert!(attempts.is_monotonic && attempts.aggregation_temporality == 2);
        let of = |outcome: &str| {
            let wanted = |point: &&_| -> bool {
                let point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint = point;
                value(&point.attributes, "isobench.outcome").as_deref() == Some(outcome)
            };
            attempts.data_points.iter().find(wanted).and_then(|point| point.value)
        };
        assert_eq!(of("committed"), Some(number_data_point::Value::AsInt(51)));
        assert_eq!(of("retried"), Some(number_data_point::Value::AsInt(12)));
        let Some(Data::Sum(time)) = &metrics[6].data else { panic!("{metrics:?}") };
        assert_eq!(time.data_points[0].value, Some(number_data_point::Value::AsDouble(1.5)));
        let Some(Data::Gauge(clients)) = &metrics[7].data else { panic!("{metrics:?}") };
        assert_eq!(clients.data_points[0].value, Some(number_data_point::Value::AsInt(16)));
        assert_eq!(value(&clients.data_points[0].attributes, "db.system.name").as_deref(), Some("db \"it\""));
    }
}
