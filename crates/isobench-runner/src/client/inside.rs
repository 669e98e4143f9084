//! Rows that report what no error message does: that the script's own SQL caught an error, or that
//! the server retried inside a statement.
//!
//! They belong to commands with a line `--@ swallowed` or `--@ inside`, and are counted whether the
//! run is recorded or not. Not here: the bucket of a swallowed attempt (`ending.rs`), and rows that
//! report data (`operations.rs`).

use std::borrow::Cow;

use isobench_pgwire::SqlState;
use isobench_pgwire::backend::DataRow;

use super::integer::integer;
use super::operations::text;
use super::state::{Client, Context};
use crate::annotated::{InsideColumns, ReportedColumn};
use crate::recorder::ConflictCount;

/// The reason of conflicts after which the server retried by itself, inside a statement (`--@
/// inside`).
pub const RETRIED_INSIDE: &str = "retried inside the server";

/// The content of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InsideRow {
    Swallowed(SqlState),
    /// Number of retries, and their time in nanoseconds.
    Retried(u64, u64),
}

impl Client {
    /// Counts what a row of this command reports. Returns true if it is a swallowed error, so that
    /// the rest of the row has no meaning.
    pub(super) fn count_reported(
        &mut self,
        ctx: &mut Context<'_>,
        command: usize,
        columns: &InsideColumns,
        row: DataRow<'_>,
    ) -> bool {
        let Some(inside) = &mut self.inside else { return false };
        match read(columns, row) {
            Ok(InsideRow::Swallowed(code)) => {
                inside.swallowed.get_or_insert((code, command));
                true
            }
            Ok(InsideRow::Retried(retries, wasted)) => {
                inside.wasted = inside.wasted.saturating_add(wasted);
                if retries > 0 {
                    self.count_inside(ctx, command, retries);
                }
                false
            }
            Err(problem) => {
                inside.problem.get_or_insert(problem);
                false
            }
        }
    }

    /// Counts the attempts that the server made inside this one. All but the last met a conflict
    /// and were retried.
    fn count_inside(&self, ctx: &mut Context<'_>, command: usize, retries: u64) {
        let ledger = &mut self.record(ctx).ledger;
        ledger.attempts.started += retries;
        ledger.attempts.retried += retries;
        ledger.retries += retries;
        if let Some(series) = &mut ctx.recorder.series {
            series.at(ctx.now).attempts += retries;
        }
        let conflict = ConflictCount {
            sqlstate: SqlState::SERIALIZATION_FAILURE,
            script: self.script,
            command,
            reason: Cow::Borrowed(RETRIED_INSIDE),
            object: None,
            count: retries,
        };
        ctx.recorder.conflict(ctx.now, conflict);
    }
}

/// Reads a row. A swallowed error takes precedence over everything else in it.
fn read(columns: &InsideColumns, row: DataRow<'_>) -> Result<InsideRow, String> {
    if let Some(ReportedColumn { column, place }) = &columns.swallowed {
        let code = text(Some(row), "sqlstate", *column).and_then(|code| code.map(sqlstate).transpose());
        if let Some(code) = code.map_err(|problem| format!("{place}: {problem}"))? {
            return Ok(InsideRow::Swallowed(code));
        }
    }
    let number = |what: &Option<ReportedColumn>, field: &str, most: u64| match what {
        None => Ok(0),
        Some(ReportedColumn { column, place }) => text(Some(row), field, *column)
            .and_then(|number| count(number, field, most))
            .map_err(|problem| format!("{place}: {problem}")),
    };
    let retries = number(&columns.retries, "number of retries", u64::from(u32::MAX))?;
    let microseconds = number(&columns.wasted, "wasted time", i64::MAX.unsigned_abs())?;
    Ok(InsideRow::Retried(retries, microseconds.saturating_mul(1_000)))
}

/// Parses the code of an error.
fn sqlstate(text: &[u8]) -> Result<SqlState, String> {
    match <[u8; 5]>::try_from(text) {
        Ok(code) if code == *b"00000" => {
            Err("the sqlstate is 00000, which is no error's; NULL says that there was none".to_owned())
        }
        Ok(code) if code.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) => {
            Ok(SqlState(code))
        }
        _ => Err(format!(
            "the sqlstate is \"{}\", which is no SQLSTATE (five digits and capital letters)",
            text.escape_ascii()
        )),
    }
}

/// Parses a number from 0 to `most`.
fn count(text: Option<&[u8]>, field: &str, most: u64) -> Result<u64, String> {
    let Some(text) = text else { return Err(format!("the {field} is NULL")) };
    let number = integer(text).and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number <= most).ok_or_else(|| {
        format!("the {field} is \"{}\", which is no integer from 0 to {most}", text.escape_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_five_digits_and_letters() {
        assert_eq!(sqlstate(b"40P01"), Ok(SqlState::DEADLOCK_DETECTED));
        for text in ["", "4000", "400010", "4000a", "4000 ", "00000", "\u{e9}123"] {
            assert!(sqlstate(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_have_bounds() {
        assert_eq!((count(Some(b"0"), "x", 9), count(Some(b"9"), "x", 9)), (Ok(0), Ok(9)));
        assert_eq!(count(None, "x", 9), Err("the x is NULL".to_owned()));
        for text in ["10", "-1", "", "1.5", "many"] {
            assert!(count(Some(text.as_bytes()), "x", 9).is_err(), "{text}");
        }
    }
}
