//! Asking a server for the tree of a statement, which is never executed.
//!
//! In a transaction that is rolled back, a function is created whose body is the statement; the server keeps its
//! tree. It takes the right to make temporary objects, or objects in the first schema of the search path, and a
//! server that isn't a standby. Where that isn't so, there is no tree but the reason.
//!
//! The types of parameters are those that the server infers. Where it can't, as in `$1 + $2`, a client that sends
//! values as literals sends numbers: they are integers then.

use crate::bound::{Bound, Gap};
use crate::values::Builtins;

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

/// The query for [`Builtins`]: each row has `=`, an operator and nothing, or `()`, a function and its name. A user's
/// function may be called immutable although it reads tables, so only the server's own count.
pub const BUILTINS: &str = "SELECT '=', amopopr, NULL::pg_catalog.text FROM pg_catalog.pg_amop \
         WHERE amopmethod = 403 AND amopstrategy = 3 \
     UNION ALL SELECT '()', p.oid, coalesce((SELECT min(o.oprname::pg_catalog.text) \
         FROM pg_catalog.pg_operator o WHERE o.oprcode = p.oid AND o.oid < 16384), p.proname::pg_catalog.text) \
         FROM pg_catalog.pg_proc p WHERE p.provolatile = 'i' AND p.prokind = 'f' AND p.oid < 16384";

/// The tree of the function that this transaction has made.
const TREE: &str = "SELECT p.prosqlbody::pg_catalog.text FROM pg_catalog.pg_proc p \
    WHERE p.proname = 'isobench_reads' AND p.xmin::pg_catalog.text::pg_catalog.int8 \
        = pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 % 4294967296";

/// The schemas in which a function may be made, in this order; the last one is the first of the search path.
const SCHEMAS: [&str; 2] = ["pg_temp.", ""];

/// The most parameters of a statement that are looked for if the server doesn't infer their types.
const MOST_PARAMETERS: usize = 100;

/// Reads a statement with parameters `$1`, `$2`, … as the server does. The session mustn't be in a transaction.
/// `builtins` are the answer to [`BUILTINS`].
///
/// # Errors
/// The session is lost.
pub fn read_statement<A: Answers>(
    statement: &str,
    builtins: &Builtins,
    server: &mut A,
) -> Result<Result<Bound, Reading>, A::Lost> {
    let refused = match server.parameters(statement)? {
        Ok(types) => match tree(statement, &types, server)? {
            Ok(tree) => return Ok(Bound::read(&tree, builtins).map_err(Reading::Gap)),
            Err(why) => why,
        },
        Err(why) => why,
    };
    let count = (1..=MOST_PARAMETERS).take_while(|number| statement.contains(&format!("${number}"))).count();
    if count > 0
        && let Ok(tree) = tree(statement, &vec![INTEGER; count], server)?
    {
        return Ok(Bound::read(&tree, builtins).map_err(Reading::Gap));
    }
    Ok(Err(Reading::Refused(refused)))
}

/// The OID of `integer` (`pg_type.dat`).
const INTEGER: u32 = 23;

fn tree<A: Answers>(
    statement: &str,
    types: &[u32],
    server: &mut A,
) -> Result<Result<String, String>, A::Lost> {
    let names = match type_names(types, server)? {
        Ok(names) => names,
        Err(why) => return Ok(Err(why)),
    };
    let mut refused = None;
    for schema in SCHEMAS {
        match made_in(schema, statement, &names, server)? {
            Ok(tree) => return Ok(Ok(tree)),
            Err(why) => drop(refused.get_or_insert(why)),
        }
    }
    Ok(Err(refused.unwrap_or_default()))
}

/// The names of types, as a function's parameters have them.
fn type_names<A: Answers>(types: &[u32], server: &mut A) -> Result<Result<String, String>, A::Lost> {
    if types.is_empty() {
        return Ok(Ok(String::new()));
    }
    let list: Vec<String> = types.iter().map(u32::to_string).collect();
    let names = format!(
        "SELECT pg_catalog.string_agg(pg_catalog.format_type(t.oid, NULL), ', ' ORDER BY t.place) \
         FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, place)",
        list.join(", ")
    );
    Ok(server.value(&names)?.map(Option::unwrap_or_default))
}

/// The tree of a function in a schema, in a transaction that is rolled back.
fn made_in<A: Answers>(
    schema: &str,
    statement: &str,
    types: &str,
    server: &mut A,
) -> Result<Result<String, String>, A::Lost> {
    if let Err(why) = server.run_one("BEGIN")? {
        return Ok(Err(why));
    }
    // A comment at the end of the statement ends with its line.
    let command = format!(
        "CREATE FUNCTION {schema}isobench_reads({types}) RETURNS pg_catalog.void LANGUAGE sql \
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
