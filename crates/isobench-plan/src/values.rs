//! Values with their own syntax: `NAME=VALUE,VALUE`, `NAME=VALUE`, `2%`.
//!
//! Each is parsed from its text wherever a plan is written, and written back as that text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text doesn't match the syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongValue(pub String);

impl WrongValue {
    /// A text, and why it is wrong.
    pub fn new(text: &str, why: &str) -> WrongValue {
        WrongValue(format!("\"{text}\": {why}"))
    }
}

/// A parameter and its values, in the order of the table; a single value sets it.
///
/// Written as `NAME=VALUE,VALUE`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Vary {
    /// The name: a parameter of the workload or of pgbench's tables, a variable of the user's own
    /// scripts, `setting:` with the name of a setting, `server-version`, or `server-bin`.
    pub name: String,
    /// Its values, as written.
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Vary, WrongValue> {
        let form =
            || WrongValue(format!("\"{text}\" isn't of the form NAME=VALUE,VALUE, such as scale=1,10"));
        let (name, values) = text.split_once('=').ok_or_else(form)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if name.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(form());
        }
        Ok(Vary { name: name.trim().to_owned(), values })
    }
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.values.join(","))
    }
}

/// A setting of the server, written as `NAME=VALUE`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    /// The name, as in `postgresql.conf`.
    pub name: String,
    /// The value.
    pub value: String,
}

impl FromStr for Setting {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Setting, WrongValue> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Setting { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(WrongValue("use NAME=VALUE".to_owned())),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// A share above 0 and up to 1, written as a percentage: `2%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Share, WrongValue> {
        let text = text.trim();
        let Some(number) = text.strip_suffix('%') else { return Err(without_unit(text)) };
        match number.trim().parse::<f64>().map(|number| number / 100.0) {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(Share(share)),
            _ => Err(not_a_percentage(text)),
        }
    }
}

fn not_a_percentage(text: &str) -> WrongValue {
    WrongValue(format!("\"{text}\" isn't a percentage above 0 and up to 100, such as 2%"))
}

/// A number without `%` may mean two precisions, of which one is a hundred times the other.
fn without_unit(text: &str) -> WrongValue {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1.0 => {
            let share = Share(number);
            WrongValue(format!("\"{text}\" may mean {text}% or, as a share, {share}; write the one with %"))
        }
        Ok(number) if number > 1.0 && number <= 100.0 => WrongValue(format!(
            "\"{text}\" lacks its unit: write {text}%, or, if you meant the share {}, {}",
            number / 100.0,
            Share(number / 100.0)
        )),
        _ => not_a_percentage(text),
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // So that 7% isn't written back as 7.000000000000001%.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

/// Conversions for serde and the schema of a value that is written as text.
macro_rules! is_text {
    ($($kind:ident),+) => {$(
        impl TryFrom<String> for $kind {
            type Error = $crate::WrongValue;

            fn try_from(text: String) -> Result<$kind, $crate::WrongValue> {
                text.parse()
            }
        }

        impl From<$kind> for String {
            fn from(value: $kind) -> String {
                value.to_string()
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    )+};
}

pub(crate) use is_text;

is_text!(Vary, Setting, Share);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written_as_one_text() {
        for text in ["rows=1,10", "server-version=14,18"] {
            assert_eq!(text.parse::<Vary>().unwrap().to_string(), text);
        }
        assert_eq!(" rows = 1, 10".parse::<Vary>().unwrap().to_string(), "rows=1,10");
        assert_eq!("fsync = off".parse::<Setting>().unwrap().to_string(), "fsync=off");
        assert_eq!("a=".parse::<Setting>().unwrap().value, "");
        for (text, share, written) in [("2%", 0.02, "2%"), ("7%", 0.07, "7%"), (" 12.5 % ", 0.125, "12.5%")] {
            let read: Share = text.parse().unwrap();
            assert!((read.0 - share).abs() < 1e-12);
            assert_eq!(read.to_string(), written);
        }
    }

    #[test]
    fn another_form_is_refused() {
        for text in ["rows", "rows=1,,2", "=1", "rows="] {
            let message = text.parse::<Vary>().unwrap_err().to_string();
            assert!(message.contains("NAME=VALUE"), "{message}");
        }
        for text in ["fsync", "=off"] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
        for text in ["0%", "-1%", "101%", "two", "NaN", ""] {
            assert!(text.parse::<Share>().unwrap_err().to_string().contains("percentage"), "{text}");
        }
        for (text, spellings) in
            [("0.5", ["0.5%", "50%"]), ("2", ["write 2%", "share 0.02"]), ("1", ["1%", "100%"])]
        {
            let message = text.parse::<Share>().unwrap_err().to_string();
            assert!(spellings.iter().all(|spelling| message.contains(spelling)), "{message}");
        }
    }
}
