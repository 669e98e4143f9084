//! The layout of a document as text: indented, but a list of numbers on one line.
//!
//! Not here: which fields there are.

use std::fmt::Write as _;

use serde_json::Value;

/// The value as JSON with an indentation of two, and a newline at the end.
pub fn lines(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text.push('\n');
    text
}

fn write(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                next(text, index, depth + 1);
                // Writing to a String can't fail.
                let _ = write!(text, "{}: ", Value::from(name.as_str()));
                write(text, value, depth + 1);
            }
            line(text, depth);
            text.push('}');
        }
        Value::Array(values) if !values.iter().all(is_number) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                next(text, index, depth + 1);
                write(text, value, depth + 1);
            }
            line(text, depth);
            text.push(']');
        }
        Value::Array(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(Value::to_string).collect();
            let _ = write!(text, "[{}]", numbers.join(", "));
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Number(_) | Value::Null)
}

fn next(text: &mut String, index: usize, depth: usize) {
    if index > 0 {
        text.push(',');
    }
    line(text, depth);
}

fn line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_share_a_line_and_everything_else_has_its_own() {
        let value = json!({"b": [1, 2.5, null], "a": [], "c": {}, "d": ["x\n\"y\""], "e": [{"f": true}]});
        let text = lines(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(
            text,
            "{\n  \"b\": [1, 2.5, null],\n  \"a\": [],\n  \"c\": {},\n  \"d\": \
             [\n    \"x\\n\\\"y\\\"\"\n  ],\n  \"e\": [\n    {\n      \"f\": true\n    }\n  ]\n}\n"
        );
    }
}
