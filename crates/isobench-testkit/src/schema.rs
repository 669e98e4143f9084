//! Validates a JSON document against a JSON Schema, as far as the schema of results uses the
//! language.
//!
//! An unknown keyword is a violation, so every part of a schema is checked. The known ones have the
//! meaning of JSON Schema 2020-12 (Validation, §6; Core, §10), in which `format` is an annotation.

use serde_json::{Map, Value};

/// Keywords that don't affect validation.
const ANNOTATIONS: [&str; 6] = ["$defs", "$schema", "default", "description", "format", "title"];

/// The violations of a schema by a document, each with its position; empty if the document is
/// valid.
pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema, found: &mut found }.apply(schema, document, "");
    found
}

struct Check<'a> {
    /// The whole schema, which is the base of references.
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn apply(&mut self, schema: &Value, value: &Value, at: &str) {
        match schema {
            Value::Bool(true) => (),
            Value::Object(keywords) => {
                for (keyword, argument) in keywords {
                    if let Err(problem) = self.keyword(keywords, keyword, argument, value, at) {
                        self.found.push(format!("{at}: {problem}"));
                    }
                }
            }
            other => self.found.push(format!("{at}: the schema {other} permits nothing")),
        }
    }

    /// True if a value conforms to a schema.
    fn obeys(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        Check { root: self.root, found: &mut found }.apply(schema, value, "");
        found.is_empty()
    }

    /// Applies a keyword and reports violations; those of parts of the value are added to `found`.
    fn keyword(
        &mut self,
        all: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let holds = match (keyword, argument) {
            ("$ref", Value::String(target)) => {
                let part = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                let part = part.ok_or_else(|| format!("the schema has no {target}"))?;
                self.apply(part, value, at);
                true
            }
            ("type", Value::String(name)) => is_of_type(value, name)?,
            ("type", Value::Array(names)) => {
                let each = names.iter().map(|name| is_of_type(value, name.as_str().unwrap_or_default()));
                each.collect::<Result<Vec<_>, _>>()?.contains(&true)
            }
            ("const", wanted) => equal(value, wanted),
            ("enum", Value::Array(wanted)) => wanted.iter().any(|wanted| equal(value, wanted)),
            ("anyOf", Value::Array(schemas)) => schemas.iter().any(|schema| self.obeys(schema, value)),
            ("oneOf", Value::Array(schemas)) => {
                schemas.iter().filter(|schema| self.obeys(schema, value)).count() == 1
            }
            ("minimum", Value::Number(least)) => {
                value.as_f64().is_none_or(|value| least.as_f64().is_some_and(|least| value >= least))
            }
            ("required", Value::Array(names)) => {
                let is_there = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
                !value.is_object() || names.iter().all(is_there)
            }
            ("items", schema) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.apply(schema, item, &format!("{at}/{index}"));
                }
                true
            }
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    if let Some(member) = value.as_object().and_then(|object| object.get(name)) {
                        self.apply(schema, member, &format!("{at}/{name}"));
                    }
                }
                true
            }
            ("additionalProperties", schema) => {
                let listed = |name: &str| all.get("properties").is_some_and(|list| list.get(name).is_some());
                for (name, member) in value.as_object().into_iter().flatten() {
                    if !listed(name) {
                        self.apply(schema, member, &format!("{at}/{name}"));
                    }
                }
                true
            }
            (known, _) if ANNOTATIONS.contains(&known) => true,
            _ => {
                return Err(format!("the schema's {keyword} is beyond isobench_testkit::schema: {argument}"));
            }
        };
        if holds { Ok(()) } else { Err(format!("{value} violates {keyword} {argument}")) }
    }
}

fn is_of_type(value: &Value, name: &str) -> Result<bool, String> {
    Ok(match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // In JSON Schema, 1.0 is an integer.
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => return Err(format!("the schema has an unknown type {name:?}")),
    })
}

/// True if two values are equal in JSON Schema, where 1 equals 1.0.
fn equal(a: &Value, b: &Value) -> bool {
    a == b || a.is_number() && b.is_number() && a.as_f64() == b.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_keyword_permits_and_refuses() {
        for (schema, good, bad) in [
            (json!({ "type": "integer" }), json!([0, -1, 2.0, u64::MAX]), json!([0.5, "1", null])),
            (json!({ "type": "number" }), json!([0, 0.5]), json!(["1", true])),
            (json!({ "type": ["string", "null"] }), json!(["", null]), json!([1, [], {}])),
            (json!({ "type": "object" }), json!([{}]), json!([[], null])),
            (json!({ "type": "boolean" }), json!([true]), json!([0, "true"])),
            (json!({ "const": 1 }), json!([1, 1.0]), json!([2, "1", true])),
            (json!({ "enum": ["a", null] }), json!(["a", null]), json!(["b", 0])),
            (json!({ "minimum": 0 }), json!([0, 1.5, "no number"]), json!([-1, -0.1])),
            (json!({ "required": ["a"] }), json!([{ "a": null }, []]), json!([{}, { "b": 1 }])),
            (json!({ "items": { "type": "null" } }), json!([[], [null], {}]), json!([[1], [null, 1]])),
            (json!({ "items": false }), json!([[], 1]), json!([[1]])),
            (json!({ "anyOf": [{ "type": "null" }, { "minimum": 3 }] }), json!([null, 3, "x"]), json!([2])),
            (json!({ "oneOf": [{ "type": "integer" }, { "minimum": 3 }] }), json!([2, 3.5]), json!([3, 2.5])),
            (
                json!({ "properties": { "a": { "type": "null" } } }),
                json!([{ "a": null, "b": 1 }, {}, 1]),
                json!([{ "a": 1 }]),
            ),
            (
                json!({ "properties": { "a": true }, "additionalProperties": false }),
                json!([{}, { "a": 1 }, 1]),
                json!([{ "b": 1 }, { "a": 1, "b": 1 }]),
            ),
            (
                json!({ "additionalProperties": { "type": "null" } }),
                json!([{}, { "a": null }]),
                json!([{ "a": 1 }]),
            ),
            (
                json!({ "$ref": "#/$defs/a", "minimum": 1, "$defs": { "a": { "type": "integer" } } }),
                json!([1]),
                json!([0, 1.5]),
            ),
        ] {
            for good in good.as_array().expect("values") {
                assert_eq!(violations(&schema, good), [""; 0], "{schema}");
            }
            for bad in bad.as_array().expect("values") {
                assert!(!violations(&schema, bad).is_empty(), "{schema} permits {bad}");
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_never_valid() {
        for schema in [
            json!({ "pattern": "a" }),
            json!({ "type": "nothing" }),
            json!({ "type": ["null", "nothing"] }),
            json!({ "type": 1 }),
            json!({ "enum": "a" }),
            json!({ "$ref": "#/$defs/missing" }),
            json!({ "$ref": "elsewhere.json" }),
            json!({ "minimum": "0" }),
            json!({ "required": "a" }),
            json!(1),
            json!(false),
        ] {
            assert!(!violations(&schema, &json!(null)).is_empty(), "{schema}");
        }
    }

    #[test]
    fn a_violation_has_its_place() {
        let schema = json!({ "properties": { "a": { "items": { "type": "null" } } } });
        let found = violations(&schema, &json!({ "a": [null, 7] }));
        assert_eq!(found, [r#"/a/1: 7 violates type "null""#]);
    }
}
