//! The tables of rounds and of their time series. The columns are `isobench_result`'s.

use std::io::Write;
use std::time::UNIX_EPOCH;

use isobench_result::{Column, Document, Place, Values, bins, round_columns, rounds, series_columns};

use crate::file::{Kind, TableFile, Value};
use crate::{ColumnType, ExportError};

/// Writes a row for each round. Returns their number.
///
/// # Errors
/// The output can't be written.
pub fn write_rounds(document: &Document, output: impl Write + Send) -> Result<u64, ExportError> {
    let mut file = TableFile::new("rounds", &round_fields(), output)?;
    for place in rounds(document) {
        file.push(round_columns().map(|column| value(column, &place)))?;
    }
    file.finish()
}

/// Writes a row for each bin of the rounds' time series. Returns their number.
///
/// # Errors
/// The output can't be written.
pub fn write_series(document: &Document, output: impl Write + Send) -> Result<u64, ExportError> {
    let mut file = TableFile::new("series", &series_fields(), output)?;
    for place in bins(document) {
        file.push(series_columns().map(|column| value(column, &place)))?;
    }
    file.finish()
}

pub(crate) fn round_fields() -> Vec<ColumnType> {
    round_columns().map(field).collect()
}

pub(crate) fn series_fields() -> Vec<ColumnType> {
    series_columns().map(field).collect()
}

/// The type of a column.
pub(crate) fn field(column: Column) -> ColumnType {
    let kind = match column.values {
        Values::Text(_) | Values::Word(_) => Kind::Text,
        Values::Count(_) => Kind::Integer,
        Values::Number(_) => Kind::Number,
        Values::Flag(_) => Kind::Flag,
        Values::Instant(_) => Kind::Instant,
    };
    (column.name, kind, column.always)
}

/// The value of a column.
pub(crate) fn value(column: Column, place: &Place<'_>) -> Value {
    let value = match column.values {
        Values::Text(value) => value(place).map(Value::text),
        Values::Word(value) => Some(Value::text(value(place.cell).into_owned())),
        Values::Count(value) => value.at(place).map(Value::count),
        Values::Number(value) => value.at(place).map(Value::Number),
        Values::Flag(value) => value(place).map(Value::Flag),
        Values::Instant(value) => value(place).and_then(|text| instant(&text)),
    };
    value.unwrap_or(Value::Missing)
}

/// Microseconds since 1970. A text that is no instant is missing.
fn instant(text: &str) -> Option<Value> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok().map(Value::Integer)
}
