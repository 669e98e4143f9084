//! A collector of OpenTelemetry that keeps what it is sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A listening collector.
pub struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Pushed>>>,
}

/// What was pushed at once: for each metric its points, by their attributes.
#[derive(Debug, Clone, Default)]
pub struct Pushed(BTreeMap<String, Vec<Point>>);

/// A point of a metric.
#[derive(Debug, Clone)]
struct Point {
    attributes: BTreeMap<String, String>,
    /// The count; of a histogram that of all its values.
    count: Option<u64>,
    /// The counts between bounds.
    buckets: Vec<u64>,
}

impl Collector {
    pub fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received: Arc<Mutex<Vec<Pushed>>> = Arc::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(&socket);
                let lines = reader.by_ref().lines().map_while(Result::ok);
                let head: Vec<String> =
                    lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
                assert_eq!(head[0], "post /v1/metrics http/1.1");
                assert!(head.contains(&"content-type: application/json".to_owned()), "{head:?}");
                let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.expect("a length")];
                reader.read_exact(&mut body).expect("a body");
                let pushed = Pushed::decode(&serde_json::from_slice(&body).expect("JSON"));
                kept.lock().expect("no panic").push(pushed);
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\
                              Connection: close\r\n\r\n{}";
                (&socket).write_all(answer.as_bytes()).expect("answered");
            }
        });
        Collector { url, received }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Everything so far, in order.
    pub fn received(&self) -> Vec<Pushed> {
        self.received.lock().expect("no panic").clone()
    }
}

impl Pushed {
    fn decode(request: &Value) -> Pushed {
        let metrics = request.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").expect("metrics");
        let metric = |metric: &Value| {
            let name = metric["name"].as_str().expect("a name").to_owned();
            let data = ["sum", "gauge", "histogram"].iter().find_map(|kind| metric.get(*kind)).expect("data");
            (name, data["dataPoints"].as_array().expect("points").iter().map(Point::decode).collect())
        };
        Pushed(metrics.as_array().expect("a list").iter().map(metric).collect())
    }

    /// The sums of a metric's counts by the value of an attribute `by`, of the points in which another
    /// one has this value.
    pub fn sums(&self, metric: &str, (by, other, value): (&str, &str, &str)) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for point in self.0.get(metric).into_iter().flatten() {
            if point.attributes[other] == value {
                *sums.entry(point.attributes[by].clone()).or_default() += point.count.expect("a count");
            }
        }
        sums
    }

    /// Asserts that no counter or histogram has become smaller.
    pub fn assert_not_above(&self, later: &Pushed) {
        for (name, points) in self.0.iter().filter(|(name, _)| !is_gauge(name)) {
            for point in points {
                let same = |other: &&Point| other.attributes == point.attributes;
                let other = later.0[name].iter().find(same).unwrap_or_else(|| panic!("{name} is gone"));
                assert!(point.count <= other.count, "{name}: {point:?}, then {other:?}");
                let pairs = point.buckets.iter().zip(&other.buckets);
                assert!(
                    pairs.clone().all(|(before, after)| before <= after),
                    "{name}: {point:?}, then {other:?}"
                );
            }
        }
    }
}

fn is_gauge(name: &str) -> bool {
    matches!(name, "isobench.clients" | "isobench.round")
}

impl Point {
    fn decode(point: &Value) -> Point {
        let number =
            |value: &Value| value.as_str().expect("an integer as text").parse::<u64>().expect("a count");
        let attribute = |attribute: &Value| {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            (text(&attribute["key"]), text(&attribute["value"]["stringValue"]))
        };
        let attributes = point["attributes"].as_array().expect("attributes").iter().map(attribute).collect();
        let buckets: Vec<u64> = point["bucketCounts"].as_array().into_iter().flatten().map(number).collect();
        let count = point.get("asInt").or(point.get("count")).map(number);
        if !buckets.is_empty() {
            assert_eq!(Some(buckets.iter().sum()), count);
        }
        Point { attributes, count, buckets }
    }
}
