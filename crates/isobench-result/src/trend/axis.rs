//! What results are ordered by: time, a tag, the server's version, or a setting.
//!
//! Not here: which results make one series (`matching`).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::{TrendPoint, TrendResult};
use crate::document::{Cell, Document};
use crate::factor::{Assignment, SERVER_BIN, SERVER_VERSION, SETTING};

/// What results are ordered by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Axis {
    /// The start of measuring.
    #[default]
    Time,
    /// The value of a tag `KEY=VALUE`. Values stand in the order of the first result that has each.
    Tag(String),
    /// The version of the server.
    ServerVersion,
    /// The value of a setting of the server.
    Setting(String),
}

/// A text that names no axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\": use time, tag:KEY, server-version or setting:NAME")]
pub struct AxisError(String);

/// The prefix of a tag's name.
const TAG: &str = "tag:";

/// The value of a setting that a result doesn't name, which is that of the product.
const DEFAULT: &str = "default";

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let named = |prefix: &str| text.strip_prefix(prefix).filter(|name| !name.is_empty());
        if let Some(key) = named(TAG).filter(|key| !key.contains('=')) {
            return Ok(Axis::Tag(key.to_owned()));
        }
        if let Some(name) = named(SETTING) {
            return Ok(Axis::Setting(name.to_owned()));
        }
        match text {
            "time" => Ok(Axis::Time),
            SERVER_VERSION => Ok(Axis::ServerVersion),
            _ => Err(AxisError(text.to_owned())),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Axis::Time => f.write_str("time"),
            Axis::Tag(key) => write!(f, "{TAG}{key}"),
            Axis::ServerVersion => f.write_str(SERVER_VERSION),
            Axis::Setting(name) => write!(f, "{SETTING}{name}"),
        }
    }
}

impl Axis {
    /// The place of a cell of a result.
    pub(super) fn place(
        &self,
        result: &TrendResult,
        document: &Document,
        cell: &Cell,
    ) -> Result<String, String> {
        let server = document.server_of(cell);
        match self {
            Axis::Time => {
                document.started_at.clone().ok_or_else(|| "it doesn't say when it was measured".to_owned())
            }
            Axis::Tag(key) => {
                let values = result.tags.iter().filter_map(|tag| tag.split_once('='));
                let value =
                    values.into_iter().find(|(known, _)| known == key).map(|(_, value)| value.to_owned());
                value.ok_or_else(|| format!("it has no tag {key}=VALUE"))
            }
            Axis::ServerVersion => Ok(server.version.clone()),
            Axis::Setting(name) => {
                let value = cell.settings.get(name).or_else(|| server.settings.get(name));
                Ok(value.map_or(DEFAULT, String::as_str).to_owned())
            }
        }
    }

    /// The factors that a series is matched by: all but the one along the axis.
    pub(super) fn without(&self, cell: Assignment) -> Assignment {
        match self {
            Axis::Time | Axis::Tag(_) => cell,
            Axis::ServerVersion => cell.without(|name| name == SERVER_VERSION || name == SERVER_BIN),
            Axis::Setting(setting) => cell.without(|name| name.strip_prefix(SETTING) == Some(setting)),
        }
    }

    /// The points in the order of the axis; those at the same place in that of time.
    pub(super) fn ordered(&self, mut points: Vec<TrendPoint>) -> Vec<TrendPoint> {
        points.sort_by(|one, other| (&one.started_at, &one.result).cmp(&(&other.started_at, &other.result)));
        match self {
            Axis::Time => {}
            Axis::Tag(_) => {
                let order: Vec<String> = points.iter().map(|point| point.at.clone()).collect();
                points.sort_by_key(|point| order.iter().position(|at| *at == point.at));
            }
            Axis::ServerVersion | Axis::Setting(_) => {
                points.sort_by(|one, other| natural(&one.at, &other.at));
            }
        }
        points
    }
}

/// The order of values as people read them: amounts by their size, numbers in texts by their value.
fn natural(one: &str, other: &str) -> Ordering {
    if let (Some(one), Some(other)) = (amount(one), amount(other)) {
        return one.total_cmp(&other);
    }
    let parts = |text: &str| -> Vec<Result<u64, String>> {
        let digit = |letter: &char| letter.is_ascii_digit();
        let letters: Vec<char> = text.chars().collect();
        let chunks = letters.chunk_by(|one, next| digit(one) == digit(next));
        let chunk = |chunk: &[char]| {
            let text: String = chunk.iter().collect();
            text.parse().map_err(|_| text)
        };
        chunks.map(chunk).collect()
    };
    parts(one).cmp(&parts(other))
}

/// A number with a unit of PostgreSQL's settings, in bytes or in seconds.
fn amount(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 12] = [
        ("", 1.0),
        ("B", 1.0),
        ("kB", 1024.0),
        ("MB", 1_048_576.0),
        ("GB", 1_073_741_824.0),
        ("TB", 1_099_511_627_776.0),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
        ("d", 86400.0),
    ];
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..])?;
    digits.trim_end().parse::<f64>().ok().map(|number| number * unit.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_read_as_it_is_written() {
        for text in ["time", "tag:commit", "server-version", "setting:fsync"] {
            assert_eq!(text.parse::<Axis>().map(|axis| axis.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "tag:", "tag", "tag:a=b", "setting:", "version", "tiem"] {
            let message = text.parse::<Axis>().expect_err(text).to_string();
            assert!(message.contains("use time, tag:KEY"), "{message}");
        }
    }

    #[test]
    fn values_stand_as_people_order_them() {
        for sorted in [
            &["9.6", "15.18", "15.19", "16.2", "18beta1"][..],
            &["64kB", "8MB", "128MB", "1GB"],
            &["200us", "10ms", "1s", "2min"],
            &["off", "on", "remote_apply"],
        ] {
            let mut shuffled: Vec<&str> = sorted.iter().rev().copied().collect();
            shuffled.sort_by(|one, other| natural(one, other));
            assert_eq!(shuffled, sorted);
        }
    }
}
