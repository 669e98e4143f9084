//! Which tables' writes can be read, according to the catalogs.
//!
//! A publication changes what the server accepts: "if a table without a replica identity is added
//! to a publication that replicates UPDATE or DELETE operations then subsequent UPDATE or DELETE
//! operations will cause an error on the publisher" (PostgreSQL manual, "Publication"). So only
//! tables are published of which every partition has its primary key as replica identity.

use std::collections::BTreeSet;
use std::fmt;

use isobench_pgwire::Connection;

use crate::error::Error;
use crate::execute::query;
use crate::quoting::literal;

/// A table whose writes aren't read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// The reason.
    pub reason: LeftOutReason,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "table \"{}.{}\" {}", self.schema, self.table, self.reason)
    }
}

/// The reason that a table's writes aren't read. It applies to the table or one of its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeftOutReason {
    /// There is no such relation.
    Missing,
    /// It is a view, a foreign table or the like, or a system catalog.
    NotATable,
    /// It is unlogged, so its writes aren't in the write-ahead log.
    Unlogged,
    /// It is temporary, so its writes aren't in the write-ahead log.
    Temporary,
    /// It has no primary key. If it were published, UPDATE and DELETE would fail.
    NoPrimaryKey,
    /// Its primary key is deferrable or unfinished. If it were published, UPDATE and DELETE would
    /// fail.
    DeferrableKey,
    /// A column of its primary key is generated, and such columns aren't published; in PostgreSQL
    /// 18 UPDATE and DELETE would fail.
    GeneratedKey,
    /// Its replica identity was set to something else than the primary key.
    OtherIdentity,
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LeftOutReason::Missing => "doesn't exist",
            LeftOutReason::NotATable => "isn't an ordinary or partitioned table",
            LeftOutReason::Unlogged => "is unlogged",
            LeftOutReason::Temporary => "is temporary",
            LeftOutReason::NoPrimaryKey => "has no primary key",
            LeftOutReason::DeferrableKey => "has a primary key that is deferrable or invalid",
            LeftOutReason::GeneratedKey => "has a generated column in its primary key",
            LeftOutReason::OtherIdentity => "has another replica identity than its primary key",
        })
    }
}

/// A table whose writes can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readable {
    /// Its number.
    pub(crate) id: u32,
    /// Its schema.
    pub(crate) schema: String,
    /// Its name.
    pub(crate) table: String,
    /// The columns of its primary key, in the key's order.
    pub(crate) key: Vec<String>,
}

/// A relation that stores rows of a table, or the table itself, as the catalogs have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the table.
    pub(crate) root: u32,
    /// The relation's number.
    pub(crate) id: u32,
    /// Its schema.
    pub(crate) schema: String,
    /// Its name.
    pub(crate) table: String,
    /// Its persistence, its replica identity and its primary key.
    form: String,
}

/// The places of these tables.
///
/// # Errors
/// The server refuses the query, or the connection is lost.
pub(crate) fn places(conn: &mut Connection, tables: &[Readable]) -> Result<Vec<Place>, Error> {
    places_of(conn, &tables.iter().map(|table| table.id).collect())
}

/// The places of the tables with these numbers.
///
/// # Errors
/// The server refuses the query, or the connection is lost.
pub(crate) fn places_of(conn: &mut Connection, tables: &BTreeSet<u32>) -> Result<Vec<Place>, Error> {
    let numbers: Vec<String> = tables.iter().map(ToString::to_string).collect();
    let select = format!(
        "SELECT root, c.oid, n.nspname, c.relname, pg_catalog.concat_ws(' ', c.relpersistence, \
         c.relreplident, i.indexrelid, i.indkey) \
         FROM pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) AS roots (root), LATERAL (SELECT root AS id \
         UNION SELECT relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(root)) AS part \
         JOIN pg_catalog.pg_class c ON c.oid = part.id \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary ORDER BY root, c.oid",
        numbers.join(",")
    );
    let number = |cell: &Option<String>| cell.as_deref().and_then(|text| text.parse::<u32>().ok());
    let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
    let place = |row: &Vec<Option<String>>| match &row[..] {
        [root, id, schema, table, form] => Some(Place {
            root: number(root)?,
            id: number(id)?,
            schema: text(schema),
            table: text(table),
            form: text(form),
        }),
        _ => None,
    };
    let rows = query(conn, &select)?.rows;
    let places: Option<Vec<Place>> = rows.iter().map(place).collect();
    places.ok_or_else(|| Error::Answer { statement: select, got: "another row".to_owned() })
}

/// Finds out whether a table's writes can be read.
///
/// # Errors
/// The server refuses a query, or the connection is lost.
pub(crate) fn examine(
    conn: &mut Connection,
    schema: &str,
    table: &str,
) -> Result<Result<Readable, LeftOut>, Error> {
    let left_out = |reason| Ok(Err(LeftOut { schema: schema.to_owned(), table: table.to_owned(), reason }));
    let find = format!(
        "SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace \
         WHERE nspname = {} AND relname = {}",
        literal(schema),
        literal(table)
    );
    let id = match conn.value(&find).map_err(|error| Error::of(error, &find))? {
        None => return left_out(LeftOutReason::Missing),
        Some(text) => text.parse().map_err(|_| Error::Answer { statement: find.clone(), got: text })?,
    };
    if schema == "pg_catalog" || schema == "information_schema" {
        return left_out(LeftOutReason::NotATable);
    }
    if let Some(reason) = obstacle(conn, id)? {
        return left_out(reason);
    }
    let key = format!(
        "SELECT attname FROM pg_catalog.pg_index i, \
         pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, place), pg_catalog.pg_attribute a \
         WHERE indrelid = {id} AND indisprimary AND attrelid = indrelid AND a.attnum = k.attnum \
         AND place <= indnkeyatts ORDER BY place"
    );
    let key = query(conn, &key)?.rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    let (schema, table) = (schema.to_owned(), table.to_owned());
    Ok(Ok(Readable { id, schema, table, key: key.collect() }))
}

/// What prevents reading writes of a table, in itself or any of its partitions.
fn obstacle(conn: &mut Connection, id: u32) -> Result<Option<LeftOutReason>, Error> {
    let facts = format!(
        "SELECT relkind, relpersistence, relreplident, i.indrelid IS NOT NULL, \
         i.indimmediate AND i.indisvalid, EXISTS (SELECT FROM pg_catalog.pg_attribute a \
         WHERE attrelid = c.oid AND attnum = ANY (i.indkey) AND attgenerated <> '') \
         FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_index i ON indrelid = c.oid AND indisprimary \
         WHERE c.oid = {id} OR c.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree({id})) ORDER BY c.oid"
    );
    let rows = query(conn, &facts)?.rows;
    let obstacles = rows.iter().filter_map(|row| {
        let cell = |place: usize| row.get(place).and_then(Option::as_deref).unwrap_or("");
        match (cell(0), cell(1)) {
            ("r" | "p", "p") => {}
            (_, "u") => return Some(LeftOutReason::Unlogged),
            (_, "t") => return Some(LeftOutReason::Temporary),
            _ => return Some(LeftOutReason::NotATable),
        }
        match (cell(2), cell(3), cell(4), cell(5)) {
            (_, "f", ..) => Some(LeftOutReason::NoPrimaryKey),
            ("d", "t", "t", "f") => None,
            (_, "t", "f", _) => Some(LeftOutReason::DeferrableKey),
            (_, "t", _, "t") => Some(LeftOutReason::GeneratedKey),
            _ => Some(LeftOutReason::OtherIdentity),
        }
    });
    Ok(obstacles.into_iter().next())
}
