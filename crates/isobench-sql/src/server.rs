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

/// What is asked of a server, in one session that isn't in a transaction. The outer result is the loss of the session,
/// the inner ones the server's refusals in its own words.
pub trait Answers {
    /// The loss of the session.
    type Lost;

    /// The types of the parameters of each statement, by OID, by Parse and Describe.
    ///
    /// # Errors
    /// The session is lost.
    fn parameters(&mut self, statements: &[&str]) -> Result<Vec<Result<Vec<u32>, String>>, Self::Lost>;

    /// Runs groups of texts and returns the first value of each group's result. The server must refuse a text that
    /// is more than one command. After an error the rest of its group is left out.
    ///
    /// # Errors
    /// The session is lost.
    fn values(&mut self, groups: &[Vec<String>]) -> Result<Vec<Result<Option<String>, String>>, Self::Lost>;
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

/// The query for [`Builtins`]. Transactions' numbers have an equality without an order. Each row has `=`, an operator and nothing; `()`, a function and its name; or `::`, a type
/// and its name. A user's function may be called immutable although it reads tables, so only the server's own count.
/// Functions of integers have their OID in the name, unless they give the same for integers of all sizes: `1 << 40`
/// depends on the size.
pub const BUILTINS: &str = "SELECT '=', amopopr, NULL::pg_catalog.text FROM pg_catalog.pg_amop \
         WHERE amopmethod = 403 AND amopstrategy = 3 \
         AND (amoplefttype = amoprighttype OR amoplefttype IN (20, 21, 23) AND amoprighttype IN (20, 21, 23)) \
     UNION ALL SELECT '=', amopopr, NULL FROM pg_catalog.pg_amop \
         WHERE amopmethod = 405 AND amopstrategy = 1 AND amoplefttype = 28 AND amoprighttype = 28 \
     UNION ALL SELECT '()', n.oid, n.name || CASE WHEN n.name !~ '^([-+*/%&|#~]|abs|mod|div|gcd|lcm)$' \
             AND EXISTS (SELECT FROM pg_catalog.unnest(n.proargtypes) AS a(oid) WHERE a.oid IN (20, 21, 23)) \
         THEN '#' || n.oid ELSE '' END \
         FROM (SELECT p.oid, p.proargtypes, coalesce(o.name, p.proname::pg_catalog.text) AS name \
             FROM pg_catalog.pg_proc p LEFT JOIN (SELECT oprcode, min(oprname::pg_catalog.text) AS name \
                 FROM pg_catalog.pg_operator WHERE oid < 16384 GROUP BY oprcode) o ON o.oprcode = p.oid \
             WHERE p.provolatile = 'i' AND p.prokind = 'f' AND p.oid < 16384) AS n \
     UNION ALL SELECT '::', oid, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type";

/// The tree of the function that this transaction has made.
const TREE: &str = "SELECT p.prosqlbody::pg_catalog.text FROM pg_catalog.pg_proc p \
    WHERE p.proname = 'isobench_reads' AND p.xmin::pg_catalog.text::pg_catalog.int8 \
        = pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 % 4294967296";

/// The schemas in which a function may be made, in this order; the last one is the first of the search path.
const SCHEMAS: [&str; 2] = ["pg_temp.", ""];

/// The most parameters of a statement that are looked for if the server doesn't infer their types.
const MOST_PARAMETERS: usize = 100;

/// Reads statements with parameters `$1`, `$2`, … as the server does, in two round trips for most. `builtins` are the
/// answer to [`BUILTINS`].
///
/// # Errors
/// The session is lost.
pub fn read_statements<A: Answers>(
    statements: &[&str],
    builtins: &Builtins,
    server: &mut A,
) -> Result<Vec<Result<Bound, Reading>>, A::Lost> {
    let types = server.parameters(statements)?;
    let mut found: Vec<Result<Bound, Reading>> = Vec::new();
    // Those that are still asked about, with the types of their parameters.
    let mut asked: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut integers: Vec<(usize, Vec<u32>)> = Vec::new();
    for (at, (statement, types)) in statements.iter().zip(types).enumerate() {
        let parameters =
            (1..=MOST_PARAMETERS).take_while(|number| statement.contains(&format!("${number}"))).count();
        if parameters > 0 {
            integers.push((at, vec![INTEGER; parameters]));
        }
        match types {
            Ok(types) => {
                asked.push((at, types));
                found.push(Err(Reading::Refused(String::new())));
            }
            Err(why) => found.push(Err(Reading::Refused(why))),
        }
    }
    let is_refused =
        |found: &[Result<Bound, Reading>], at: usize| matches!(found[at], Err(Reading::Refused(_)));
    for (round, schema) in
        [(&asked, SCHEMAS[0]), (&asked, SCHEMAS[1]), (&integers, SCHEMAS[0]), (&integers, SCHEMAS[1])]
    {
        let left: Vec<&(usize, Vec<u32>)> = round.iter().filter(|(at, _)| is_refused(&found, *at)).collect();
        let groups = left.iter().flat_map(|(at, types)| groups(statements[*at], types, schema, builtins));
        let groups: Vec<Vec<String>> = groups.collect();
        if groups.is_empty() {
            continue;
        }
        let answers = server.values(&groups)?;
        for ((at, _), answer) in left.into_iter().zip(answers.chunks(2)) {
            match answer {
                // In a transaction that isn't over no other answer counts.
                [_, Err(why)] | [Err(why), _] => {
                    if let Err(Reading::Refused(first)) = &mut found[*at]
                        && first.is_empty()
                    {
                        first.clone_from(why);
                    }
                }
                [Ok(Some(tree)), Ok(_)] => {
                    found[*at] = Bound::read(tree, builtins).map_err(Reading::Gap);
                }
                _ => found[*at] = Err(Reading::Refused("the function has no tree".to_owned())),
            }
        }
    }
    Ok(found)
}

/// The OID of `integer` (`pg_type.dat`).
const INTEGER: u32 = 23;

/// The commands that make a function of a statement and return its tree, and those that roll this back.
fn groups(statement: &str, types: &[u32], schema: &str, builtins: &Builtins) -> [Vec<String>; 2] {
    let name = |oid: &u32| builtins.types.get(oid).cloned().unwrap_or_else(|| format!("type {oid}"));
    let types = types.iter().map(name).collect::<Vec<_>>().join(", ");
    // A comment at the end of the statement ends with its line.
    let command = format!(
        "CREATE FUNCTION {schema}isobench_reads({types}) RETURNS pg_catalog.void LANGUAGE sql \
         BEGIN ATOMIC {statement}\n; END"
    );
    [vec!["BEGIN".to_owned(), command, TREE.to_owned()], vec!["ROLLBACK".to_owned()]]
}
