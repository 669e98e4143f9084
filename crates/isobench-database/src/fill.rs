//! The text of the rows that fill the tables, and sending it: by COPY or by INSERT, at once or in
//! batches.

use std::ops::RangeInclusive;
use std::time::Instant;

use isobench_pgwire::Connection;

use crate::copy_target::CopyTarget;
use crate::database::Database;
use crate::error::Error;
use crate::execute::{Retry, execute};
use crate::progress::Progress;
use crate::schema::Names;
use crate::table::{ACCOUNTS, TELLERS, Table};
use crate::tables::{Freeze, LoadHow, batches, copy_command, copy_in_batches, insert_in_batches};

/// Progress is told every so many rows.
const TOLD_EVERY: u64 = 100;
/// Bytes of rows handed to the connection at a time: enough to make each write worth it, little
/// enough to stay in the cache.
const CHUNK: usize = 64 * 1024;

/// Sends all rows of a table.
pub(crate) fn fill(
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
            progress(Progress::Rows { table, done, total: rows, elapsed: started.elapsed() });
        }
    };
    let ours = Names::default();
    match how {
        LoadHow::Copy(freeze) => copy_at_once(conn, db, table, freeze, rows, &mut tell),
        LoadHow::CopyBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut retry = Retry::new(db);
            while let Err(error) = copy_in_transaction(conn, db, table, batch.clone()) {
                retry.after(error)?;
            }
            tell_batch(&batch, &mut tell);
            Ok(())
        }),
        LoadHow::InsertBatches(size) => batches(rows, size).try_for_each(|batch| {
            let mut text = db.place(&insert_in_batches(table), &ours).into_owned().into_bytes();
            for number in batch.clone() {
                if number != *batch.start() {
                    text.push(b',');
                }
                text.push(b'(');
                write_row(&mut text, table, number, Form::Sql);
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
    (first..=*batch.end()).step_by(100).for_each(tell);
}

/// One COPY of a whole table, in the transaction that is open.
fn copy_at_once(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    freeze: Freeze,
    rows: u64,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let target = CopyTarget::look(conn, db, table, freeze)?;
    let (columns, form) =
        if target.constants_by_server { ("(aid,bid)", Form::Keys) } else { ("", Form::Whole) };
    target.let_server_fill(conn, db)?;
    let command = copy_command(table, columns, target.freeze);
    copy(conn, &db.place(&command, &Names::default()), table, 1..=rows, form, tell)?;
    target.restore(conn, db)
}

/// One COPY of these rows.
fn copy(
    conn: &mut Connection,
    command: &str,
    table: Table,
    range: RangeInclusive<u64>,
    form: Form,
    tell: &mut dyn FnMut(u64),
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
            tell(number);
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

/// One COPY in a transaction of its own; after an error nothing of it is left, unless COMMIT's
/// result is unknown.
fn copy_in_transaction(
    conn: &mut Connection,
    db: &Database,
    table: Table,
    range: RangeInclusive<u64>,
) -> Result<(), Error> {
    conn.execute("begin").map_err(|error| Error::of(error, "begin"))?;
    let command = copy_in_batches(table);
    let copied = copy(conn, &db.place(&command, &Names::default()), table, range, Form::Named, &mut |_| {});
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

/// How a row is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// For COPY, all columns.
    Whole,
    /// For COPY, the columns that have a value.
    Named,
    /// For COPY, the columns that aren't the same in all rows.
    Keys,
    /// For INSERT, the columns that have a value.
    Sql,
}

/// Row `number` of a table at its start: all balances are 0, the accounts' filler is blank, the
/// others' is NULL.
fn write_row(out: &mut Vec<u8>, table: Table, number: u64, form: Form) {
    let between = if form == Form::Sql { b',' } else { b'\t' };
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
    if form == Form::Keys {
        return;
    }
    out.extend_from_slice(&[between, b'0']);
    let filler: &[u8] = match (table, form) {
        (Table::Accounts, Form::Sql) => b",''",
        (Table::Accounts, _) => b"\t",
        (_, Form::Whole) => b"\t\\N",
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
        assert_eq!(row(Table::Branches, 7, Form::Named), "7\t0");
        assert_eq!(row(Table::Branches, 7, Form::Whole), "7\t0\t\\N");
        assert_eq!(row(Table::Tellers, 10, Form::Named), "10\t1\t0");
        assert_eq!(row(Table::Tellers, 10, Form::Whole), "10\t1\t0\t\\N");
        assert_eq!(row(Table::Tellers, 11, Form::Sql), "11,2,0");
        assert_eq!(row(Table::Accounts, 100_000, Form::Whole), "100000\t1\t0\t");
        assert_eq!(row(Table::Accounts, 100_000, Form::Named), "100000\t1\t0\t");
        assert_eq!(row(Table::Accounts, 100_001, Form::Keys), "100001\t2");
        assert_eq!(row(Table::Accounts, 100_001, Form::Sql), "100001,2,0,''");
    }

    #[test]
    fn batches_tell_every_hundred() {
        let mut told = Vec::new();
        for batch in batches(350, 170) {
            tell_batch(&batch, &mut |done| told.push(done));
        }
        assert_eq!(told, [100, 200, 300]);
    }
}
