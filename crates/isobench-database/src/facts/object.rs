//! Where a product's errors name the table, or the row of it, that a conflict was about.
//!
//! Not here: finding it there (`object.rs`).

/// A part of an error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The primary message.
    Message,
    /// The context: the calls that led there.
    Context,
}

/// A place where an error may name the object. The first one that does wins; before all of them
/// comes the error's own field for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectMark {
    /// Between this text, which ends with a quotation mark, and the next quotation mark.
    Quoted(Part, &'static str),
    /// In the innermost statement of the context: the table that it writes or locks. It is a
    /// function's, or one that checks a foreign key.
    Statement,
    /// In the first line of the detail, which tells what the victim of a deadlock waited for:
    /// `relation 16409`.
    Number,
    /// A key of `CockroachDB` in the message: table, index and values, for example
    /// `/Table/110/5/5/0`. What comes after `meta={` isn't what the conflict was about, but where
    /// the transaction wrote first.
    Key,
    /// A key of `YugabyteDB` in the detail: hash and values, for example `DocKey(0x1210, [1], [])`.
    /// It doesn't say of which table.
    DocKey,
}

/// Where PostgreSQL names the object: in the context of a wait for a lock, for example
/// `while updating tuple (0,12) in relation "t"`, and in that of a statement which isn't the
/// client's. A wait for the turn at a row has no context, but the table's number in the detail. Of
/// a row that was changed meanwhile, without a wait that failed, it names none.
///
/// Rows aren't told apart: a tuple's number is another one after each update.
pub(crate) static PG_OBJECTS: [ObjectMark; 3] =
    [ObjectMark::Quoted(Part::Context, "in relation \""), ObjectMark::Statement, ObjectMark::Number];

/// PostgreSQL manual, "`pg_class`": tables and indexes that aren't the system's.
pub(crate) const PG_RELATIONS: &str = "select oid, relname from pg_catalog.pg_class \
    where oid >= 16384 and relkind in ('r', 'p', 'm', 'i') order by oid desc limit 10000";
