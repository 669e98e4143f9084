//! Checks for every result document.

use std::sync::OnceLock;

use isobench_stats::LatencyHistogram;
use isobench_testkit::schema::violations;
use serde_json::Value;

use super::scene::Scene;

/// Reads a result and checks the general rules: the schema, the books of every round, and the
/// absence of broken promises.
pub fn read(scene: &Scene, name: &str) -> Value {
    let document: Value = serde_json::from_str(&scene.read(name)).expect("JSON");
    let errors = violations(schema(), &document);
    assert!(errors.is_empty(), "not as docs/result.schema.json says:\n{}", errors.join("\n"));
    for round in rounds(&document) {
        check_books(round);
    }
    document
}

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result.schema.json");
        let text = std::fs::read_to_string(path).expect("the schema");
        serde_json::from_str(&text).expect("JSON")
    })
}

pub fn cells(document: &Value) -> &[Value] {
    document["cells"].as_array().expect("cells")
}

/// All rounds of all cells.
pub fn rounds(document: &Value) -> impl Iterator<Item = &Value> {
    cells(document).iter().flat_map(|cell| cell["rounds"].as_array().expect("rounds"))
}

/// A count by its path, such as `/attempts/started`.
pub fn count(value: &Value, path: &str) -> u64 {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no count {path} in {value:#}"))
}

/// A number by its path.
pub fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number {path} in {value:#}"))
}

/// Accounting rules 1 and 2, and 7 as far as it could be checked.
fn check_books(round: &Value) {
    let sum = |group: &str, names: &[&str]| -> u64 {
        names.iter().map(|name| count(round, &format!("/{group}/{name}"))).sum()
    };
    // Omitted if there are none.
    let own = ["swallowed", "rolled_back"].map(|name| {
        let of = |group: &str| round[group][name].as_u64().unwrap_or(0);
        assert_eq!(of("attempts"), of("transactions"), "{name}");
        of("attempts")
    });
    let own: u64 = own.iter().sum();
    let attempts =
        sum("attempts", &["committed", "retried", "given_up", "ambiguous", "cut_off", "errored"]) + own;
    assert_eq!(count(round, "/attempts/started"), attempts, "attempts don't balance: {}", round["attempts"]);
    let transactions =
        sum("transactions", &["committed", "given_up", "ambiguous", "cut_off", "errored", "skipped"]) + own;
    let total = count(round, "/transactions/total");
    assert_eq!(total, transactions, "transactions don't balance: {}", round["transactions"]);
    assert_eq!(count(round, "/attempts/committed"), count(round, "/transactions/committed"));
    for invariant in round["invariants"].as_array().expect("invariants") {
        // Whether transactions keep a condition of the user's is the test's own affair.
        let promised = invariant["promised"] != Value::Bool(false) && invariant["own"] != Value::Bool(true);
        assert!(!(promised && invariant["held"] == Value::Bool(false)), "{invariant:#}");
    }
    let histogram = round["latency_ms"]["histogram"].as_str().expect("a histogram");
    let histogram = LatencyHistogram::from_base64(histogram).expect("HdrHistogram's format");
    assert_eq!(histogram.len(), count(round, "/transactions/committed"), "latencies counted");
}

/// Fails unless the invariants of the TPC-B-like tables were checked in every round, and held.
pub fn assert_invariants_held(document: &Value) {
    for round in rounds(document) {
        let invariants = round["invariants"].as_array().expect("invariants");
        assert!(invariants.len() >= 4, "{invariants:?}");
        assert!(invariants.iter().all(|invariant| invariant["held"] == Value::Bool(true)), "{invariants:?}");
    }
}
