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
    let mut asked: Vec<(usize, Function<'_>)> = Vec::new();
    let mut integers: Vec<(usize, Function<'_>)> = Vec::new();
    let function = |statement, types: &[u32]| {
        let name = |oid: &u32| builtins.types.get(oid).cloned().unwrap_or_else(|| format!("type {oid}"));
        Function {
            parameters: types.iter().map(name).collect::<Vec<_>>().join(", "),
            statement,
            search_path: None,
        }
    };
    for (at, (statement, types)) in statements.iter().zip(types).enumerate() {
        let parameters =
            (1..=MOST_PARAMETERS).take_while(|number| statement.contains(&format!("${number}"))).count();
        if parameters > 0 {
            integers.push((at, function(statement, &vec![INTEGER; parameters])));
        }
        match types {
            Ok(types) => {
                asked.push((at, function(statement, &types)));
                found.push(Err(Reading::Refused(String::new())));
            }
            Err(why) => found.push(Err(Reading::Refused(why))),
        }
    }
    for round in [&asked, &integers] {
        ask(round, &mut found, builtins, server)?;
    }
    Ok(found)
}

/// A function whose body is a statement.
pub(crate) struct Function<'s> {
    /// Its parameters, with their types, as SQL.
    pub(crate) parameters: String,
    pub(crate) statement: &'s str,
    /// Where it looks for names, if it sets that.
    pub(crate) search_path: Option<&'s str>,
}

/// Reads statements of functions as the server does.
///
/// # Errors
/// The session is lost.
pub(crate) fn read_functions<A: Answers>(
    functions: Vec<Function<'_>>,
    builtins: &Builtins,
    server: &mut A,
) -> Result<Vec<Result<Bound, Reading>>, A::Lost> {
    let mut found: Vec<_> = functions.iter().map(|_| Err(Reading::Refused(String::new()))).collect();
    let asked: Vec<_> = functions.into_iter().enumerate().collect();
    ask(&asked, &mut found, builtins, server)?;
    Ok(found)
}

/// Asks about those that aren't read yet; each has its place among the answers.
fn ask<A: Answers>(
    asked: &[(usize, Function<'_>)],
    found: &mut [Result<Bound, Reading>],
    builtins: &Builtins,
    server: &mut A,
) -> Result<(), A::Lost> {
    for schema in SCHEMAS {
        let is_refused = |(at, _): &&(usize, Function<'_>)| matches!(found[*at], Err(Reading::Refused(_)));
        let left: Vec<&(usize, Function<'_>)> = asked.iter().filter(is_refused).collect();
        let groups: Vec<Vec<String>> =
            left.iter().flat_map(|(_, function)| function.groups(schema)).collect();
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
    Ok(())
}

/// The OID of `integer` (`pg_type.dat`).
const INTEGER: u32 = 23;

impl Function<'_> {
    /// The commands that make the function in a schema and return its tree, and those that roll this back.
    fn groups(&self, schema: &str) -> [Vec<String>; 2] {
        let Function { parameters, statement, search_path } = self;
        let mut commands = vec!["BEGIN".to_owned()];
        commands.extend(search_path.map(|path| format!("SET LOCAL search_path TO {path}")));
        // A comment at the end of the statement ends with its line.
        commands.push(format!(
            "CREATE FUNCTION {schema}isobench_reads({parameters}) RETURNS pg_catalog.void LANGUAGE sql \
             BEGIN ATOMIC {statement}\n; END"
        ));
        commands.push(TREE.to_owned());
        [commands, vec!["ROLLBACK".to_owned()]]
    }
}
