//! Values of expressions: the four types, pgbench's coercions between them, and their text form.

use std::fmt;

use crate::error::EvalError;
use crate::number::{is_space, looks_like_int, parse_double, write_double};

/// The value of an expression.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Value {
    /// `NULL`
    Null,
    /// `TRUE` or `FALSE`
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double precision number.
    Double(f64),
}

impl Value {
    /// The type's name in pgbench's messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Converts a variable's text to the value that an expression sees.
    ///
    /// The following are tried in this order, in any case: `null`; a prefix of `true`, `false`, `yes`,
    /// `no`, or `on`, `off`, `of`; an integer; a double. Determined by running pgbench 15.
    pub(crate) fn from_text(text: &str, name: impl FnOnce() -> String) -> Result<Value, EvalError> {
        if let Some(value) = parse_word(text) {
            return Ok(value);
        }
        if looks_like_int(text) {
            let digits = text.trim_start_matches(is_space);
            return digits.parse().map(Value::Int).map_err(|_| {
                let text = text.to_owned();
                if digits.len() > 1 {
                    EvalError::VariableOutOfRange { text }
                } else {
                    EvalError::VariableSyntax { text }
                }
            });
        }
        match parse_double(text) {
            Some(value) => Ok(Value::Double(value)),
            None => Err(EvalError::MalformedVariable { name: name(), text: text.to_owned() }),
        }
    }

    /// True for `NULL`.
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value as a condition of `\if`, `CASE` or `IS TRUE`: nonzero numbers are true, `NULL` is
    /// false.
    #[inline]
    pub fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// The value as an operand of `AND`, `OR` or `NOT`.
    ///
    /// # Errors
    /// If it isn't a boolean.
    #[inline]
    pub fn as_bool(self) -> Result<bool, EvalError> {
        match self {
            Self::Bool(value) => Ok(value),
            other => Err(EvalError::CannotCoerce { from: other.type_name(), to: "boolean" }),
        }
    }

    /// The value as an integer; doubles are rounded to the nearest, ties to even.
    ///
    /// # Errors
    /// If it is `NULL`, a boolean, or a double outside the range.
    #[inline]
    pub fn as_int(self) -> Result<i64, EvalError> {
        match self {
            Self::Int(value) => Ok(value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                // −2^63 is exact as a double; 2^63 is the smallest double that is too large.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
                    return Ok(rounded as i64);
                }
                Err(EvalError::DoubleToIntOverflow { value })
            }
            other => Err(EvalError::CannotCoerce { from: other.type_name(), to: "int" }),
        }
    }

    /// The value as a double.
    ///
    /// # Errors
    /// If it is `NULL` or a boolean.
    #[inline]
    pub fn as_double(self) -> Result<f64, EvalError> {
        match self {
            Self::Int(value) => Ok(value as f64),
            Self::Double(value) => Ok(value),
            other => Err(EvalError::CannotCoerce { from: other.type_name(), to: "double" }),
        }
    }

    /// Appends the text that pgbench substitutes for a variable of this value.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Self::Int(value) => write_int(value, out),
            Self::Double(value) => write_double(value, out),
        }
    }
}

fn parse_word(text: &str) -> Option<Value> {
    // `n` is short for `no`, and `o` alone is ambiguous.
    const WORDS: [(&str, usize, Value); 7] = [
        ("null", 4, Value::Null),
        ("true", 1, Value::Bool(true)),
        ("false", 1, Value::Bool(false)),
        ("yes", 1, Value::Bool(true)),
        ("no", 1, Value::Bool(false)),
        ("on", 2, Value::Bool(true)),
        ("off", 2, Value::Bool(false)),
    ];
    // Most variables are numbers.
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    WORDS.iter().find_map(|(word, shortest, value)| {
        let fits = text.len() >= *shortest
            && word.get(..text.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(text));
        fits.then_some(*value)
    })
}

/// Appends the decimal digits, bypassing the formatting machinery because this runs for each
/// variable reference.
fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(24);
        self.write_text(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_like_pgbench_reads_them() {
        let read = |text: &str| Value::from_text(text, || "v".to_owned());
        for (text, value) in [
            ("01", Value::Int(1)),
            ("+5", Value::Int(5)),
            (" 5", Value::Int(5)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("1e3", Value::Double(1000.0)),
            ("0x10", Value::Double(16.0)),
            ("-inf", Value::Double(f64::NEG_INFINITY)),
            ("NuLl", Value::Null),
            ("tr", Value::Bool(true)),
            ("of", Value::Bool(false)),
            ("ON", Value::Bool(true)),
            ("n", Value::Bool(false)),
        ] {
            assert_eq!(read(text), Ok(value), "{text}");
        }
        for text in ["", "5 ", "o", "nu", "1x", "1e400", "1e-400", "truex", "é", "1_000", "infinit"] {
            assert!(matches!(read(text), Err(EvalError::MalformedVariable { .. })), "{text}");
        }
        assert!(matches!(read("+"), Err(EvalError::VariableSyntax { .. })));
        assert!(matches!(read("9223372036854775808"), Err(EvalError::VariableOutOfRange { .. })));
    }
}
