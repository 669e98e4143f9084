//! Documents with something missing, empty, or far out of range.

use isobench_result::Document;
use proptest::sample::Index;
use serde_json::Value;

/// The number of ways to hurt a value.
pub const KINDS: usize = 6;

/// The document with those of the wounds that leave it readable.
pub fn wounded(document: &Document, wounds: &[(Index, usize)]) -> Document {
    let mut value = serde_json::to_value(document).expect("a document is plain data");
    for (place, kind) in wounds {
        let mut places = Vec::new();
        pointers(&value, String::new(), &mut places);
        let pointer = places.swap_remove(place.index(places.len()));
        let mut worse = value.clone();
        hurt(&mut worse, &pointer, *kind);
        if serde_json::from_value::<Document>(worse.clone()).is_ok() {
            value = worse;
        }
    }
    serde_json::from_value(value).expect("it is readable")
}

/// All places in a value.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at);
    }
}

fn hurt(value: &mut Value, pointer: &str, kind: usize) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    if kind == 0 {
        match value.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                fields.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
            Some(Value::Array(items)) => {
                if let Ok(index) = name.parse::<usize>() {
                    items.remove(index);
                }
            }
            _ => {}
        }
        return;
    }
    let Some(place) = value.pointer_mut(pointer) else { return };
    *place = match (&*place, kind) {
        (Value::Number(_), 1) => Value::from(0),
        (Value::Number(number), 2) if number.is_f64() => Value::from(f64::MAX),
        (Value::Number(number), 2) if number.as_u64().is_some_and(|number| number > u64::from(u8::MAX)) => {
            Value::from(u64::MAX)
        }
        (Value::Number(_), 2) => Value::from(u32::MAX),
        (Value::Number(number), 3) if number.is_f64() => Value::from(-1.5),
        (Value::Array(_), 1 | 2) => Value::Array(Vec::new()),
        (Value::Array(items), 3) => Value::Array(items.iter().chain(items).cloned().collect()),
        (Value::String(_), 1) => Value::from(""),
        (Value::String(_), 2) => Value::from("x".repeat(400)),
        (Value::Bool(old), 1..=3) => Value::from(!old),
        _ => Value::Null,
    };
}
