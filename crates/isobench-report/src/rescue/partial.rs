//! JSON that ends in the middle or is damaged from somewhere on: the values that came before, as
//! far as they are whole.
//!
//! The reading is `serde_json`'s; here is only what is kept of it when it fails. Not here: what the
//! values mean.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What could be read, and why the rest couldn't.
#[derive(Debug)]
pub struct Partial {
    /// The value, without what isn't whole; `None` if there is nothing.
    pub value: Option<Value>,
    /// Why reading ended before the end of the text; `None` if it didn't.
    pub broken: Option<serde_json::Error>,
}

/// Reads as far as the text goes.
///
/// Objects and arrays that aren't whole are kept only down to `depth` levels (the outermost value
/// is at level 0); what lies deeper is whole or is left out.
pub fn read(text: &str, depth: usize) -> Partial {
    // A number at the very end of an object's text is one that was cut.
    let whole = text.trim_end_matches(|letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter));
    let mut value = None;
    let mut source = serde_json::Deserializer::from_str(whole);
    let outcome = Keep { slot: &mut value, depth }.deserialize(&mut source).and_then(|()| source.end());
    Partial { value, broken: outcome.err() }
}

/// Reads a value into a place outside, so that it stays when reading ends with an error.
struct Keep<'a> {
    slot: &'a mut Option<Value>,
    /// How many levels of unfinished values are kept, this one included in level 0.
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Keep<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let mut map = Map::new();
        let mut members = || -> Result<(), A::Error> {
            while let Some(key) = source.next_key::<String>()? {
                let mut member = None;
                let seed = Keep { slot: &mut member, depth: self.depth.saturating_sub(1) };
                let outcome = source.next_value_seed(seed);
                if let Some(member) = member.filter(|_| outcome.is_ok() || self.depth > 0) {
                    map.insert(key, member);
                }
                outcome?;
            }
            Ok(())
        };
        let outcome = members();
        *self.slot = Some(Value::Object(map)).filter(|_| outcome.is_ok() || self.depth > 0);
        outcome
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let mut list = Vec::new();
        let mut elements = || -> Result<(), A::Error> {
            loop {
                let mut element = None;
                let seed = Keep { slot: &mut element, depth: self.depth.saturating_sub(1) };
                let outcome = source.next_element_seed(seed);
                list.extend(element.filter(|_| outcome.is_ok() || self.depth > 0));
                if outcome?.is_none() {
                    return Ok(());
                }
            }
        };
        let outcome = elements();
        *self.slot = Some(Value::Array(list)).filter(|_| outcome.is_ok() || self.depth > 0);
        outcome
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(Value::Null)
    }
}

impl Keep<'_> {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that a visitor's methods have")]
    fn scalar<E>(self, value: impl Into<Value>) -> Result<(), E> {
        *self.slot = Some(value.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str, depth: usize) -> Option<Value> {
        read(text, depth).value
    }

    #[test]
    fn what_is_whole_is_read_as_it_is() {
        let text = r#"{"a": [1, -2, 2.5, "x\n", null, true, {}], "b": {"c": []}}"#;
        let partial = read(text, 0);
        assert!(partial.broken.is_none());
        assert_eq!(partial.value, Some(serde_json::from_str(text).unwrap()));
    }

    #[test]
    fn what_is_cut_is_kept_down_to_a_depth() {
        let text = r#"{"a": 1, "b": [{"c": 1}, {"c": [2, 3"#;
        assert_eq!(value(text, 0), None);
        assert_eq!(value(text, 1), Some(json!({"a": 1})));
        assert_eq!(value(text, 2), Some(json!({"a": 1, "b": [{"c": 1}]})));
        assert_eq!(value(text, 3), Some(json!({"a": 1, "b": [{"c": 1}, {}]})));
        assert_eq!(value(text, 4), Some(json!({"a": 1, "b": [{"c": 1}, {"c": [2]}]})));
    }

    #[test]
    fn a_number_that_may_have_been_cut_is_left_out() {
        for text in
            [r#"{"a": 1, "b": 12"#, r#"{"a": 1, "b": -1.5e"#, r#"{"a": 1, "b": tru"#, r#"{"a": 1, "b"#]
        {
            assert_eq!(value(text, 9), Some(json!({"a": 1})), "{text}");
        }
    }

    #[test]
    fn damage_ends_the_reading_and_says_where() {
        let partial = read("{\"a\": 1,\n \"b\": @, \"c\": 2}", 9);
        assert_eq!(partial.value, Some(json!({"a": 1})));
        let broken = partial.broken.unwrap();
        assert_eq!((broken.line(), broken.is_eof()), (2, false));
        let partial = read("{\"a\": 1} and more", 9);
        assert_eq!(partial.value, Some(json!({"a": 1})));
        assert!(partial.broken.unwrap().to_string().starts_with("trailing characters"));
        assert_eq!(value("", 9), None);
    }

    #[test]
    fn depth_without_end_is_no_panic() {
        assert!(read(&"[".repeat(100_000), 9).broken.is_some());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", depth in 0_usize..5) {
            read(&text, depth);
        }
    }
}
