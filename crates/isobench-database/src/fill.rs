//! The text of the rows that fill the tables, and sending it: by COPY or INSERT, at once or in
//! batches.

use std::ops::RangeInclusive;
use std::time::Instant;

use isobench_pgwire::Connection;

use crate::copy_target::CopyTarget;
use crate::database::Database;
use crate::error::Error;
use crate::execute::{Retry, execute};
use crate::progress::InitProgress;
use crate::schema::OwnNames;
use crate::table::{ACCOUNTS, TELLERS, Table};
use crate::tables::{Freeze, LoadMethod, batches, copy_command, copy_in_batches, insert_in_batches};

/// Number of rows between two progress reports.
const REPORT_EVERY: u64 = 100;
/// Bytes of rows passed to the connection at a time: enough to make each write worthwhile, few
/// enough to stay in the cache.
const CHUNK: usize = 64 * 1024;

/// Sends all rows of a table.
pub(crate) fn fill(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    how: LoadMethod,
    rows: u64,
    progress: &mut dyn FnMut(InitProgress),
) -> Result<(), Error> {
    let started = Instant::now();
    let mut report = |done: u64| {
        if done.is_multiple_of(REPORT_EVERY) {
            progress(InitProgress::Rows { table, done, total: rows, elapsed: started.elapsed() });
        }
    };
    let ours = OwnNames::default();
    match how {
        LoadMethod::Copy(freeze) => copy_at_once(conn, db, table, freeze, rows, &mut report),
        LoadMethod::CopyBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut retry = Retry::new(db);
            while let Err(error) = copy_in_transaction(conn, db, table, batch.clone()) {
                retry.after(error)?;
            }
            report_batch(&batch, &mut report);
            Ok(())
        }),
        LoadMethod::InsertBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut text = db.place(&insert_in_batches(table), &ours).into_owned().into_bytes();
            for number in batch.clone() {
                if number != *batch.start() {
                    text.push(b',');
                }
                text.push(b'(');
                write_row(&mut text, table, number, RowForm::Sql);
                text.push(b')');
            }
            // Only ASCII was written.
            execute(conn, db, &String::from_utf8_lossy(&text))?;
            report_batch(&batch, &mut report);
            Ok(())
        }),
    }
}

/// Reports every multiple of [`REPORT_EVERY`] within a batch.
fn report_batch(batch: &RangeInclusive<u64>, report: &mut dyn FnMut(u64)) {
    let first = batch.start().next_multiple_of(REPORT_EVERY);
    (first..=*batch.end()).step_by(100).for_each(report);
}

/// Copies a whole table in the open transaction.
fn copy_at_once(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    freeze: Freeze,
    rows: u64,
    report: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let target = CopyTarget::look(conn, db, table, freeze)?;
    let (columns, form) =
        if target.constants_by_server { ("(aid,bid)", RowForm::Keys) } else { ("", RowForm::Whole) };
    target.let_server_fill(conn, db)?;
    let command = copy_command(table, columns, target.freeze);
    copy(conn, &db.place(&command, &OwnNames::default()), table, 1..=rows, form, report)?;
    target.restore(conn, db)
}

/// Copies these rows.
fn copy(
    conn: &mut Connection,
    command: &str,
    table: Table,
    range: RangeInclusive<u64>,
    form: RowForm,
    report: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut begun = false;
    let mut numbers = range;
    let mut fill = |out: &mut Vec<u8>| {
        begun = true;
        let mut more = false;
        let full = out.len() + CHUNK;
        while out.len() < full {
            let Some(number) = numbers.next() else { break };
            write_row(out, table, number, form);
            out.push(b'\n');
            report(number);
            more = true;
        }
        more
    };
    match conn.copy_in(command, &mut fill) {
        Ok(_) => Ok(()),
        Err(isobench_pgwire::Error::Server(source)) if begun => Err(Error::CopyFailed { table, source }),
        Err(isobench_pgwire::Error::Server(source)) => Err(Error::CopyRefused { table, source }),
        Err(error) => Err(Error::of(error, command)),
    }
}

/// Copies rows in a transaction of its own. After an error nothing is left, unless the result of
/// COMMIT is unknown.
fn copy_in_transaction(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    range: RangeInclusive<u64>,
) -> Result<(), Error> {
    conn.execute("begin").map_err(|error| Error::of(error, "begin"))?;
    let command = copy_in_batches(table);
    let copied =
        copy(conn, &db.place(&command, &OwnNames::default()), table, range, RowForm::Named, &mut |_| {});
    let end = if copied.is_ok() { "commit" } else { "rollback" };
    let ended = conn.execute(end).map_err(|error| Error::of(error, end));
    copied?;
    // CockroachDB answers ROLLBACK to the COMMIT of a failed transaction.
    match ended?.last() {
        Some(completed) if completed.tag == "ROLLBACK" => {
            Err(Error::Answer { statement: "commit".to_owned(), got: "ROLLBACK".to_owned() })
        }
        _ => Ok(()),
    }
}

/// The format of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowForm {
    /// For COPY, all columns.
    Whole,
    /// For COPY, the columns that have a value.
    Named,
    /// For COPY, the columns that aren't the same in all rows.
    Keys,
    /// For INSERT, the columns that have a value.
    Sql,
}

/// Appends row `number` of a table in its starting state: all balances are 0, the filler of
/// accounts is blank, that of other tables NULL.
fn write_row(out: &mut Vec<u8>, table: Table, number: u64, form: RowForm) {
    let between = if form == RowForm::Sql { b',' } else { b'\t' };
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(number).as_bytes());
    let branch = match table {
        Table::Accounts => Some((number - 1) / ACCOUNTS + 1),
        Table::Tellers => Some((number - 1) / TELLERS + 1),
        Table::Branches | Table::History => None,
    };
    if let Some(branch) = branch {
        out.push(between);
        out.extend_from_slice(digits.format(branch).as_bytes());
    }
    if form == RowForm::Keys {
        return;
    }
    out.extend_from_slice(&[between, b'0']);
    let filler: &[u8] = match (table, form) {
        (Table::Accounts, RowForm::Sql) => b",''",
        (Table::Accounts, _) => b"\t",
        (_, RowForm::Whole) => b"\t\\N",
        _ => b"",
    };
    out.extend_from_slice(filler);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_every_form() {
        let row = |table, number, form| {
            let mut out = Vec::new();
            write_row(&mut out, table, number, form);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(row(Table::Branches, 7, RowForm::Named), "7\t0");
        assert_eq!(row(Table::Branches, 7, RowForm::Whole), "7\t0\t\\N");
        assert_eq!(row(Table::Tellers, 10, RowForm::Named), "10\t1\t0");
        assert_eq!(row(Table::Tellers, 10, RowForm::Whole), "10\t1\t0\t\\N");
        assert_eq!(row(Table::Tellers, 11, RowForm::Sql), "11,2,0");
        assert_eq!(row(Table::Accounts, 100_000, RowForm::Whole), "100000\t1\t0\t");
        assert_eq!(row(Table::Accounts, 100_000, RowForm::Named), "100000\t1\t0\t");
        assert_eq!(row(Table::Accounts, 100_001, RowForm::Keys), "100001\t2");
        assert_eq!(row(Table::Accounts, 100_001, RowForm::Sql), "100001,2,0,''");
    }

    #[test]
    fn batches_tell_every_hundred() {
        let mut reported = Vec::new();
        for batch in batches(350, 170) {
            report_batch(&batch, &mut |done| reported.push(done));
        }
        assert_eq!(reported, [100, 200, 300]);
    }
}
