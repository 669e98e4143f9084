//! The places where a product's errors name the table or row that a conflict was about.
//!
//! Not here: parsing them (`object.rs`).

/// A part of an error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The primary message.
    Message,
    /// The context: the call stack.
    Context,
}

/// A place where an error may name the object. The first one that does wins, after the error's own
/// field for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectMark {
    /// Between this text, which ends with a quotation mark, and the next quotation mark.
    Quoted(Part, &'static str),
    /// In the innermost statement of the context: the table that it writes or locks. The statement
    /// is a function's, or checks a foreign key.
    Statement,
    /// In the first line of the detail, which says what the victim of a deadlock waited for:
    /// `relation 16409`.
    Number,
    /// A key of `CockroachDB` in the message: table, index and values, for example
    /// `/Table/110/5/5/0`. The text after `meta={` isn't about the conflict, but names the key that
    /// the transaction wrote first.
    Key,
    /// A key of `YugabyteDB` in the detail: hash and values, for example `DocKey(0x1210, [1], [])`.
    /// It doesn't name the table.
    DocKey,
}

/// PostgreSQL's places: the context of a wait for a lock, for example `while updating tuple (0,12)
/// in relation "t"`, and that of a statement that isn't the client's. A wait for the turn at a row
/// has no context, but the table's number in the detail. An error about a row that was changed
/// meanwhile, without a failed wait, doesn't name the table.
///
/// Rows aren't distinguished, because a tuple's number changes with each update.
pub(crate) static PG_OBJECTS: [ObjectMark; 3] =
    [ObjectMark::Quoted(Part::Context, "in relation \""), ObjectMark::Statement, ObjectMark::Number];

/// PostgreSQL manual, "`pg_class`": tables and indexes that aren't the system's.
pub(crate) const PG_RELATIONS: &str = "select oid, relname from pg_catalog.pg_class \
    where oid >= 16384 and relkind in ('r', 'p', 'm', 'i') order by oid desc limit 10000";
