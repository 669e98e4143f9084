//! Statements that are prepared, bound to values, and answered.

use std::sync::Arc;

use isobench_capture::{Answer, Column, Datum, Statement};
use isobench_pgwire::backend::{self, RowDescription};

/// A statement, whose text and columns have no numbers yet.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Recorded {
    /// The statement; the numbers in it mean nothing.
    pub(crate) statement: Statement,
    /// Its text.
    pub(crate) sql: Arc<str>,
    /// The columns of each answer.
    pub(crate) columns: Vec<Option<Arc<[Column]>>>,
    /// True if it may hold a password.
    pub(crate) secret: bool,
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) sql: Arc<str>,
    pub(super) comment: Option<String>,
    /// It may hold a password.
    pub(super) secret: bool,
    pub(super) types: Arc<[u32]>,
    pub(super) columns: Option<Arc<[Column]>>,
}

/// A portal.
#[derive(Clone, Debug)]
pub(super) struct Portal {
    /// The name of its statement, which may be another one's by now.
    pub(super) statement: Vec<u8>,
    pub(super) prepared: Prepared,
    pub(super) parameters: Vec<Option<Datum>>,
    pub(super) formats: Arc<[i16]>,
    /// True once it was executed.
    pub(super) begun: bool,
}

/// The values of a Bind.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) formats: Vec<i16>,
    pub(super) parameters: Vec<Option<Vec<u8>>>,
    pub(super) result_formats: Vec<i16>,
}

/// The format of the value at this place: one code for each, one for all, or none for text.
pub(super) fn format_of(formats: &[i16], index: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        several => several.get(index).copied().unwrap_or(0),
    }
}

pub(super) fn columns_of(description: RowDescription<'_>) -> Arc<[Column]> {
    let column = |field: backend::Field<'_>| Column {
        name: field.name.into_owned(),
        table: field.table,
        number: field.column,
        type_oid: field.data_type,
    };
    description.fields().map(column).collect()
}

/// The types of the parameters that were bound; empty if none is known.
pub(super) fn types_of(prepared: &Prepared, parameters: &[Option<Datum>]) -> Vec<u32> {
    let types = (0..parameters.len()).map(|index| prepared.types.get(index).copied().unwrap_or(0));
    let types: Vec<u32> = types.collect();
    if types.iter().all(|type_oid| *type_oid == 0) { Vec::new() } else { types }
}

pub(super) fn recorded_of(
    session: u64,
    (sent, at): (u64, u64),
    portal: &Portal,
    answer: Answer,
    columns: Option<Arc<[Column]>>,
) -> Recorded {
    let statement = Statement {
        session,
        at: sent,
        took: at.saturating_sub(sent),
        comment: portal.prepared.comment.clone(),
        parameters: portal.parameters.clone(),
        types: types_of(&portal.prepared, &portal.parameters),
        answers: vec![answer],
        continued: portal.begun,
        ..Statement::default()
    };
    let (sql, secret) = (Arc::clone(&portal.prepared.sql), portal.prepared.secret);
    Recorded { statement, sql, columns: vec![columns], secret }
}
