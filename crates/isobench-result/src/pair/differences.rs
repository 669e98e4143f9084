//! The differences between two results besides their numbers, and those that make a comparison
//! unfair.
//!
//! Server, client and plan are compared member by member as they are in the JSON, so that a new
//! member needs nothing here.

use serde::Serialize;
use serde_json::Value;

use crate::document::{Document, PlannedScript, Workload};

/// Something that isn't the same in both results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path in the result document, such as `server.settings.fsync`.
    pub what: String,
    /// The value in A; empty if it has nothing of the kind.
    pub a: String,
    /// The value in B.
    pub b: String,
}

/// Members that differ in any two results and explain nothing: texts that hold other members, sizes
/// that grow with the time.
static PASSED_OVER: [&str; 4] = ["server.version_text", "server.relations", "server.notes", "plan.workload"];

/// Longer values are cut.
const LONGEST: usize = 60;

/// The differences in server, client and plan, in that order.
pub fn differences(a: &Document, b: &Document) -> Vec<Difference> {
    let sections = |document: &Document| {
        [
            ("server", serde_json::to_value(&document.server)),
            ("client", serde_json::to_value(&document.client)),
            ("plan", serde_json::to_value(&document.plan)),
        ]
    };
    let mut found = Vec::new();
    for ((name, a), (_, b)) in sections(a).into_iter().zip(sections(b)) {
        // Plain data can always be written.
        collect(name, &a.unwrap_or_default(), &b.unwrap_or_default(), &mut found);
    }
    if scripts(&a.workload) != scripts(&b.workload) {
        let (a, b) = (scripts(&a.workload), scripts(&b.workload));
        found.push(Difference { what: "plan.workload".to_owned(), a, b });
    }
    found
}

fn collect(path: &str, a: &Value, b: &Value, found: &mut Vec<Difference>) {
    if a == b || PASSED_OVER.contains(&path) {
        return;
    }
    let (empty, nothing) = (serde_json::Map::new(), Value::Null);
    let members = |value: &Value| value.as_object().cloned();
    match (members(a), members(b)) {
        (None, None) => found.push(Difference { what: path.to_owned(), a: shown(a), b: shown(b) }),
        (a, b) => {
            let (a, b) = (a.unwrap_or(empty.clone()), b.unwrap_or(empty));
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let (a, b) = (a.get(name).unwrap_or(&nothing), b.get(name).unwrap_or(&nothing));
                collect(&format!("{path}.{name}"), a, b, found);
            }
        }
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

fn scripts(workload: &Workload) -> String {
    let one = |script: &PlannedScript| format!("{}@{}", script.name, script.weight);
    workload.scripts.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// A condition that must be equal for a ratio to mean what it seems to: its name, and how to get
/// it.
type Condition = (&'static str, fn(&Document) -> Value);

static CONDITIONS: [Condition; 11] = [
    ("the scripts' texts", |document| {
        Value::from(document.workload.scripts.iter().map(|script| script.text.as_str()).collect::<Vec<_>>())
    }),
    ("the measured time", |document| {
        Value::from(vec![Value::from(document.plan.seconds()), Value::from(document.plan.transactions)])
    }),
    ("the warm-up", |document| Value::from(vec![document.plan.warmup(), document.plan.max_warmup()])),
    ("the seed", |document| Value::from(document.plan.seed)),
    ("the number of workers", |document| Value::from(document.plan.jobs())),
    ("the most attempts of a transaction", |document| Value::from(document.plan.max_tries())),
    ("the latency limit", |document| Value::from(document.plan.latency_limit)),
    ("the think time", |document| Value::from(document.plan.think_time)),
    ("connecting for each transaction", |document| Value::from(document.plan.connect)),
    ("the machine that measured", |document| {
        let client = &document.client;
        Value::from(vec![Value::from(client.cpu.as_str()), client.cores.into(), client.memory_bytes.into()])
    }),
    ("the version of isobench", |document| Value::from(document.client.version.as_str())),
];

/// The conditions with their values in a result.
pub fn conditions(document: &Document) -> impl Iterator<Item = (&'static str, Value)> {
    CONDITIONS.iter().map(|(name, get)| (*name, get(document)))
}

/// The conditions that aren't equal, by name.
fn unequal(a: &Document, b: &Document) -> Vec<&'static str> {
    CONDITIONS.iter().filter(|(_, get)| get(a) != get(b)).map(|(name, _)| *name).collect()
}

/// Warnings to read before believing the ratios: unequal conditions, incomplete results, each
/// result's own warnings.
pub fn warnings(a: &Document, b: &Document) -> Vec<String> {
    let unequal = unequal(a, b).into_iter();
    let mut warnings: Vec<String> =
        unequal.map(|name| format!("A and B differ in {name}, which is part of every ratio.")).collect();
    for (letter, document) in [("A", a), ("B", b)] {
        if !document.complete {
            let reason = document.incomplete_reason.as_deref().unwrap_or("it ended early");
            warnings.push(format!("{letter} is incomplete: {}.", reason.trim_end_matches('.')));
        }
        warnings.extend(document.warnings.iter().map(|warning| format!("{letter}: {warning}")));
    }
    for (letter, document) in [("A", a), ("B", b)] {
        let flagged = document.cells.iter().filter(|cell| !cell.summary.flags.is_empty());
        warnings.extend(flagged.flat_map(|cell| {
            let name = format!("{letter}, {}, {} clients", cell.level.name(), cell.clients);
            cell.summary.flags.iter().map(move |flag| format!("{name}: {}: {}", flag.kind.name(), flag.text))
        }));
    }
    warnings
}
