//! Asking a server for the tree of a statement, which is never executed.
//!
//! In a transaction that is rolled back, a function is created whose body is the statement; the server keeps its
//! tree. It takes the right to make temporary objects, and a server that isn't a standby. Where that isn't so,
//! the reading has no tree but the reason.

use crate::bound::{Bound, Gap};

/// What is asked of a server, in one session. The outer result is the loss of the session, the inner one the
/// server's refusal in its own words.
pub trait Answers {
    /// The loss of the session.
    type Lost;

    /// The types of a statement's parameters, by OID, by Parse and Describe.
    ///
    /// # Errors
    /// The session is lost.
    fn parameters(&mut self, statement: &str) -> Result<Result<Vec<u32>, String>, Self::Lost>;

    /// Runs a text that the server must refuse if it is more than one command.
    ///
    /// # Errors
    /// The session is lost.
    fn run_one(&mut self, command: &str) -> Result<Result<(), String>, Self::Lost>;

    /// The first value of a query of isobench's own.
    ///
    /// # Errors
    /// The session is lost.
    fn value(&mut self, query: &str) -> Result<Result<Option<String>, String>, Self::Lost>;
}

/// A statement as the server reads it, or why that isn't known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reading {
    /// The server refuses the statement, or can't be asked.
    #[error("the server doesn't analyse it: {0}")]
    Refused(String),
    /// The server's tree has something that isn't known.
    #[error(transparent)]
    Gap(#[from] Gap),
}

/// The tree of the function that was made last in this session.
const TREE: &str = "SELECT p.prosqlbody::pg_catalog.text FROM pg_catalog.pg_proc p \
    WHERE p.proname = 'isobench_reads' AND p.pronamespace = pg_catalog.pg_my_temp_schema()";

/// Reads a statement with parameters `$1`, `$2`, … as the server does. The session mustn't be in a transaction.
///
/// # Errors
/// The session is lost.
pub fn read_statement<A: Answers>(
    statement: &str,
    server: &mut A,
) -> Result<Result<Bound, Reading>, A::Lost> {
    let types = match server.parameters(statement)? {
        Ok(types) => types,
        Err(why) => return Ok(Err(Reading::Refused(why))),
    };
    let tree = match tree(statement, &types, server) {
        Ok(tree) => tree,
        Err(lost) => return Err(lost),
    };
    Ok(match tree {
        Ok(tree) => Bound::read(&tree).map_err(Reading::Gap),
        Err(why) => Err(Reading::Refused(why)),
    })
}

fn tree<A: Answers>(
    statement: &str,
    types: &[u32],
    server: &mut A,
) -> Result<Result<String, String>, A::Lost> {
    let list: Vec<String> = types.iter().map(u32::to_string).collect();
    let names = format!(
        "SELECT pg_catalog.string_agg(pg_catalog.format_type(t.oid, NULL), ', ' ORDER BY t.place) \
         FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, place)",
        list.join(", ")
    );
    let names = match server.value(&names)? {
        Ok(names) => names.unwrap_or_default(),
        Err(why) => return Ok(Err(why)),
    };
    if let Err(why) = server.run_one("BEGIN")? {
        return Ok(Err(why));
    }
    // A comment at the end of the statement ends with its line.
    let command = format!(
        "CREATE FUNCTION pg_temp.isobench_reads({names}) RETURNS pg_catalog.void LANGUAGE sql \
         BEGIN ATOMIC {statement}\n; END"
    );
    let tree = match server.run_one(&command)? {
        Ok(()) => server.value(TREE)?,
        Err(why) => Err(why),
    };
    Ok(match (server.run_one("ROLLBACK")?, tree) {
        (Err(why), _) | (Ok(()), Err(why)) => Err(why),
        (Ok(()), Ok(Some(tree))) => Ok(tree),
        (Ok(()), Ok(None)) => Err("the function has no tree".to_owned()),
    })
}
