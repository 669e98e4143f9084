//! The mark on tables that `isobench init` made among the user's own: a comment. Objects of a
//! workload's names without it are somebody else's, and are neither dropped nor written.
//!
//! Not here: the mark of the schema in which comparisons work (`namespace.rs`).

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::execute::{execute, query};
use crate::namespace::MARK;
use crate::schema::OwnNames;

/// An object on the server with a name that a workload uses.
struct Found {
    /// The kind, as in COMMENT ON.
    kind: &'static str,
    name: String,
    marked: bool,
}

/// Checks that no table, sequence or routine of these names is somebody else's. Returns the names
/// that exist.
///
/// # Errors
/// [`Error::ForeignObject`], or the server doesn't tell, which is a refusal, too.
pub fn require_ours(conn: &mut Connection, names: &OwnNames) -> Result<Vec<String>, Error> {
    let found = find(conn, names)?;
    match found.iter().find(|object| !object.marked) {
        Some(Found { kind, name, .. }) => {
            Err(Error::ForeignObject { kind: kind.to_lowercase(), name: name.clone() })
        }
        None => Ok(found.into_iter().map(|object| object.name).collect()),
    }
}

/// Marks the objects of these names as ours. Call it only after [`require_ours`], and after they
/// were made. Returns notes for the user: objects on which the product takes no comment.
///
/// # Errors
/// The connection is lost.
pub fn mark(conn: &mut Connection, db: &Database, names: &OwnNames) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for Found { kind, name, .. } in find(conn, names)?.into_iter().filter(|object| !object.marked) {
        match execute(conn, db, &format!("COMMENT ON {kind} {name} IS '{MARK}'")) {
            Err(Error::Query { source, .. }) if !source.is_fatal() => notes.push(format!(
                "{} {name} can't be marked as made by isobench ({}): drop it before the next \"isobench init\"",
                kind.to_lowercase(),
                source.message
            )),
            other => {
                other?;
            }
        }
    }
    Ok(notes)
}

/// The relations that these names lead to, as a statement would find them, and the routines in the
/// schema where CREATE OR REPLACE would replace them.
fn find(conn: &mut Connection, names: &OwnNames) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for name in names.of_set_up() {
        let relations = format!(
            "SELECT relkind::text, coalesce(pg_catalog.obj_description(oid, 'pg_class'), '') \
             FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('{name}')::oid"
        );
        let routines = format!(
            "SELECT 'routine', coalesce(pg_catalog.obj_description(p.oid, 'pg_proc'), '') \
             FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = pronamespace \
             WHERE proname = '{name}' AND nspname = current_schema()"
        );
        for sql in [relations, routines] {
            for row in query(conn, &sql)?.rows {
                let text = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
                let kind = match text(0).as_str() {
                    "routine" => "ROUTINE",
                    "S" => "SEQUENCE",
                    "v" => "VIEW",
                    "m" => "MATERIALIZED VIEW",
                    _ => "TABLE",
                };
                found.push(Found { kind, name: name.to_owned(), marked: text(1) == MARK });
            }
        }
    }
    Ok(found)
}
