//! The text of the rows that fill the tables, and sending it: by COPY or by INSERT, at once or in batches.

use std::ops::RangeInclusive;
use std::time::Instant;

use isobench_pgwire::Connection;

use crate::error::Error;
use crate::init::{Retry, execute};
use crate::product::Database;
use crate::progress::Progress;
use crate::tables::{ACCOUNTS, LoadHow, TELLERS, Table, batches};

/// pgbench tells its progress every so many rows.
const TOLD_EVERY: u64 = 100_000;
/// Bytes of rows handed to the connection at a time: enough to make each write worth it, little enough to stay in
/// the cache.
const CHUNK: usize = 64 * 1024;

/// Sends all rows of a table.
pub(crate) fn load(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    how: LoadHow,
    rows: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let started = Instant::now();
    let mut tell = |done: u64| {
        if done.is_multiple_of(TOLD_EVERY) {
            progress(Progress::Rows { table: table.name(), done, total: rows, elapsed: started.elapsed() });
        }
    };
    let command = how.command(table);
    match how {
        LoadHow::Copy { .. } => copy(conn, &command, table, 1..=rows, &mut tell),
        LoadHow::CopyBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut retry = Retry::new(db);
            while let Err(error) = copy_in_transaction(conn, &command, table, batch.clone()) {
                retry.after(error)?;
            }
            tell_batch(&batch, &mut tell);
            Ok(())
        }),
        LoadHow::InsertBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut text = command.clone().into_bytes();
            for number in batch.clone() {
                if number != *batch.start() {
                    text.push(b',');
                }
                text.push(b'(');
                write_row(&mut text, table, number, Separators::SQL);
                text.push(b')');
            }
            // Only ASCII was written.
            execute(conn, db, &String::from_utf8_lossy(&text))?;
            tell_batch(&batch, &mut tell);
            Ok(())
        }),
    }
}

/// Tells every multiple of [`TOLD_EVERY`] that a batch passed.
fn tell_batch(batch: &RangeInclusive<u64>, tell: &mut dyn FnMut(u64)) {
    let first = batch.start().next_multiple_of(TOLD_EVERY);
    (first..=*batch.end()).step_by(100_000).for_each(tell);
}

/// One COPY of these rows.
fn copy(
    conn: &mut Connection,
    command: &str,
    table: Table,
    range: RangeInclusive<u64>,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut numbers = range;
    let mut fill = |out: &mut Vec<u8>| {
        let mut more = false;
        let full = out.len() + CHUNK;
        while out.len() < full {
            let Some(number) = numbers.next() else { break };
            write_row(out, table, number, Separators::COPY);
            out.push(b'\n');
            tell(number);
            more = true;
        }
        more
    };
    conn.copy_in(command, &mut fill).map_err(|error| Error::of(error, command))?;
    Ok(())
}

/// One COPY in a transaction of its own; after an error nothing of it is left, unless COMMIT's result is unknown.
fn copy_in_transaction(
    conn: &mut Connection,
    command: &str,
    table: Table,
    range: RangeInclusive<u64>,
) -> Result<(), Error> {
    conn.execute("begin").map_err(|error| Error::of(error, "begin"))?;
    let copied = copy(conn, command, table, range, &mut |_| {});
    let end = if copied.is_ok() { "commit" } else { "rollback" };
    let ended = conn.execute(end).map_err(|error| Error::of(error, end));
    copied?;
    // CockroachDB answers ROLLBACK to the COMMIT of a transaction that has failed.
    match ended?.last() {
        Some(completed) if completed.tag == "ROLLBACK" => {
            Err(Error::Answer { statement: "commit".to_owned(), got: "ROLLBACK".to_owned() })
        }
        _ => Ok(()),
    }
}

/// What stands between values and for values that SQL and COPY write differently.
#[derive(Clone, Copy)]
struct Separators {
    between: u8,
    empty_text: &'static [u8],
}

impl Separators {
    const COPY: Self = Separators { between: b'\t', empty_text: b"" };
    const SQL: Self = Separators { between: b',', empty_text: b"''" };
}

/// Row `number` of a table at its start: all balances are 0, the accounts' filler is blank, the others' is left out
/// and so NULL.
fn write_row(out: &mut Vec<u8>, table: Table, number: u64, with: Separators) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(number).as_bytes());
    out.push(with.between);
    let branch = match table {
        Table::Accounts => Some((number - 1) / ACCOUNTS + 1),
        Table::Tellers => Some((number - 1) / TELLERS + 1),
        Table::Branches | Table::History => None,
    };
    if let Some(branch) = branch {
        out.extend_from_slice(digits.format(branch).as_bytes());
        out.push(with.between);
    }
    out.push(b'0');
    if table == Table::Accounts {
        out.push(with.between);
        out.extend_from_slice(with.empty_text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_copy_and_sql() {
        let row = |table, number, with| {
            let mut out = Vec::new();
            write_row(&mut out, table, number, with);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(row(Table::Branches, 7, Separators::COPY), "7\t0");
        assert_eq!(row(Table::Tellers, 10, Separators::COPY), "10\t1\t0");
        assert_eq!(row(Table::Tellers, 11, Separators::SQL), "11,2,0");
        assert_eq!(row(Table::Accounts, 100_000, Separators::COPY), "100000\t1\t0\t");
        assert_eq!(row(Table::Accounts, 100_001, Separators::SQL), "100001,2,0,''");
    }

    #[test]
    fn batches_tell_every_hundred_thousand() {
        let mut told = Vec::new();
        for batch in batches(250_000, 70_000) {
            tell_batch(&batch, &mut |done| told.push(done));
        }
        assert_eq!(told, [100_000, 200_000]);
    }
}
