//! Times as people write them: `2.5`, `500ms`, `2min`. A number without a unit is in the option's
//! own unit, as in pgbench.
//!
//! The same on the command line and in a plan file; a result has numbers. Not here: their ranges,
//! which are checked where the plan is resolved (`isobench-comparison`).

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a time whose own unit is the second.
///
/// # Errors
/// Neither a number nor a number with a unit.
pub fn seconds(text: &str) -> Result<f64, String> {
    read(text, 1.0, "seconds", "2.5, 500ms or 2min")
}

/// Reads a time whose own unit is the millisecond.
///
/// # Errors
/// Neither a number nor a number with a unit.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    read(text, 1e3, "milliseconds", "50, 0.5ms or 1s")
}

fn read(text: &str, per_second: f64, unit: &str, examples: &str) -> Result<f64, String> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number);
    }
    let place = text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len());
    let (number, given) = text.split_at(place);
    let factor = UNITS.iter().find(|(name, _)| *name == given).map(|(_, factor)| factor * per_second);
    match (number.trim().parse::<f64>(), factor) {
        (Ok(number), Some(factor)) => Ok(number * factor),
        _ => Err(format!(
            "use {unit} as a number, or a number with one of the units us, ms, s, min and h: {examples}"
        )),
    }
}

/// The units, in seconds.
const UNITS: [(&str, f64); 6] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];

/// A time in a plan file: a number, or a text as on the command line.
struct Written(fn(&str) -> Result<f64, String>);

impl Visitor<'_> for Written {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number, or a text such as \"500ms\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<f64>, E> {
        Ok(Some(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<f64>, E> {
        Ok(Some(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<f64>, E> {
        Ok(Some(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<f64>, E> {
        self.0(text).map(Some).map_err(|error| E::custom(format!("\"{text}\": {error}")))
    }

    fn visit_unit<E: Error>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }
}

/// Reads a member in seconds.
pub(crate) fn in_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    from.deserialize_any(Written(seconds))
}

/// Reads a member in milliseconds.
pub(crate) fn in_milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    from.deserialize_any(Written(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_options_unit_and_a_unit_is_converted() {
        for (text, read) in [("1", 1.0), (" 2.5 ", 2.5), ("500ms", 0.5), ("2 min", 120.0), ("1h", 3600.0)] {
            assert_eq!(seconds(text), Ok(read), "{text}");
        }
        for (text, read) in [("50", 50.0), ("1s", 1000.0), ("250us", 0.25), ("0.5ms", 0.5)] {
            assert_eq!(milliseconds(text), Ok(read), "{text}");
        }
        for text in ["", "s", "1 second", "1,5", "1d"] {
            assert!(seconds(text).unwrap_err().contains("500ms or 2min"), "{text}");
            assert!(milliseconds(text).unwrap_err().contains("use milliseconds"), "{text}");
        }
    }
}
