//! The relations that scripts name: each has to be there before scripts are tried or measured.
//!
//! The server looks names up when it prepares a statement, so that nothing is executed. Not here: other
//! mistakes, which trying a script shows (`trial.rs`).

use isobench_database::products::POSTGRESQL;
use isobench_observation::statement_places;
use isobench_pgwire::{Connection, ServerError, SqlState};
use isobench_script::{CommandKind, Script, Sql};

use crate::failure::{Failure, Outcome};
use crate::setup::has_word;
use crate::site::Site;
use crate::tables::Tables;

/// Codes of errors for a table or a schema that doesn't exist (PostgreSQL manual, "Error Codes").
const MISSING: [SqlState; 2] = [SqlState(*b"42P01"), SqlState(*b"3F000")];

/// Words of commands that may create a relation, or rename one.
const CREATING: [&str; 5] = ["call", "create", "do", "import", "rename"];

/// Functions of users that may create a relation.
const FUNCTIONS: &str = "SELECT DISTINCT proname FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND pronamespace NOT IN \
     (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema'))";

/// Checks that every table, view and sequence that scripts name is there. On products other than
/// PostgreSQL nothing is checked.
///
/// # Errors
/// One isn't, the message names file, line and relation; or the server is gone.
pub fn require_relations<'s>(
    site: &Site,
    tables: &Tables,
    scripts: impl IntoIterator<Item = &'s Script>,
) -> Outcome {
    missing(site, tables, scripts)?.map_or(Ok(()), |problem| Err(Failure::Setup(problem)))
}

/// The first relation that a script names and that isn't there, with its place and advice.
///
/// # Errors
/// The server is gone.
pub(crate) fn missing<'s>(
    site: &Site,
    tables: &Tables,
    scripts: impl IntoIterator<Item = &'s Script>,
) -> Outcome<Option<String>> {
    if site.database.product.name != POSTGRESQL.name {
        return Ok(None);
    }
    let mut connection = site.open().map_err(Failure::setup)?;
    let functions = connection.query(FUNCTIONS).map_err(Failure::setup)?.rows;
    let functions: Vec<String> = functions.into_iter().flatten().flatten().collect();
    let mut found = None;
    for script in scripts {
        found = first_missing(&mut connection, script, &functions)?;
        if found.is_some() {
            break;
        }
    }
    connection.close();
    Ok(found.map(|problem| format!("{problem}\n  {}", remedy(tables))))
}

fn first_missing(
    connection: &mut Connection,
    script: &Script,
    functions: &[String],
) -> Outcome<Option<String>> {
    for command in &script.commands {
        let CommandKind::Sql(sql) = &command.kind else { continue };
        for place in statement_places(sql) {
            let text = &sql.parameterized[place.clone()];
            let Some(error) = refused(connection, text)? else { continue };
            if may_be_made(script, &error, text, functions) {
                continue;
            }
            let before = sql.parameterized[..place.start].matches('\n').count();
            let line = command.line as usize + before;
            return Ok(Some(format!("{}:{line}: {}", script.name, error.report(Some(text)))));
        }
    }
    Ok(None)
}

/// The server's error for a statement with a name that it doesn't know.
fn refused(connection: &mut Connection, statement: &str) -> Outcome<Option<ServerError>> {
    let names = named_only(statement);
    let sent = names.as_deref().unwrap_or(statement);
    let error = match connection.analyse(sent) {
        Ok(_) => return Ok(None),
        Err(error) if error.is_connection_lost() => return Err(Failure::setup(error)),
        Err(error) => error,
    };
    let Some(error) = error.server().filter(|error| MISSING.contains(&error.code)) else { return Ok(None) };
    let position = error.position.filter(|_| names.is_none());
    Ok(Some(ServerError { position, ..error.clone() }))
}

/// A query of the tables that a LOCK or TRUNCATE names, which can't be prepared.
fn named_only(statement: &str) -> Option<String> {
    const ENDS: [&str; 6] = ["in", "nowait", "restart", "continue", "cascade", "restrict"];
    let mut words = statement.split_whitespace().peekable();
    words.next_if(|word| ["lock", "truncate"].iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))?;
    words.next_if(|word| word.eq_ignore_ascii_case("table"));
    let named: Vec<&str> =
        words.take_while(|word| !ENDS.iter().any(|end| word.eq_ignore_ascii_case(end))).collect();
    Some(format!("SELECT FROM {}", named.join(" ")))
}

/// True if the script itself may make what isn't there yet: it creates something of that name, or has a
/// command or a function that may.
fn may_be_made(script: &Script, error: &ServerError, statement: &str, functions: &[String]) -> bool {
    let name = error.position.and_then(|at| name_at(statement, at));
    let named = |text: &str| name.as_deref().is_none_or(|name| has_word(text, name));
    let into = |sql: &Sql| sql.keyword(&["into"]).is_some() && sql.keyword(&["insert", "merge"]).is_none();
    script.sql().any(|sql| {
        let text = sql.as_written();
        let creates = sql.keyword(&CREATING);
        let unnamed = creates.is_some_and(|word| word == "do" || word == "call");
        unnamed
            || (creates.is_some() || into(sql)) && named(&text)
            || functions.iter().any(|function| has_word(&text, function))
    })
}

/// The last part of the name at a place, in characters from 1.
fn name_at(statement: &str, position: u32) -> Option<String> {
    let at = usize::try_from(position).ok()?.checked_sub(1)?;
    let ends = |letter: char| letter.is_whitespace() || "(),;'".contains(letter);
    let named: String = statement
        .chars()
        .skip(at)
        .skip_while(|letter| *letter == '\'')
        .take_while(|letter| !ends(*letter))
        .collect();
    let last = named.rsplit('.').next()?.trim_matches('"').to_owned();
    (!last.is_empty()).then_some(last)
}

/// What to do about a relation that isn't there.
fn remedy(tables: &Tables) -> &'static str {
    match tables {
        Tables::Own(_) => "Make it in the file of --setup, or correct the name in the script.",
        Tables::Kept(_) => "Make it in the schema of --schema, or correct the name in the script.",
        Tables::Pgbench { .. } | Tables::Checked(_) | Tables::Found => {
            "Make it by --setup FILE.sql, such as pg_dump --no-owner --no-privileges writes, or correct the name in \
             the script."
        }
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, parse};

    use super::*;

    #[test]
    fn locks_and_truncations_name_tables() {
        let named = |text: &str| named_only(text);
        assert_eq!(named("LOCK TABLE a, shop.b IN EXCLUSIVE MODE").unwrap(), "SELECT FROM a, shop.b");
        assert_eq!(named("truncate only a restart identity").unwrap(), "SELECT FROM only a");
        assert_eq!(named("SELECT 1"), None);
    }

    #[test]
    fn names_are_read_at_their_place() {
        assert_eq!(name_at("SELECT * FROM public.\"Products\" p", 15).unwrap(), "Products");
        assert_eq!(name_at("SELECT nextval('public.s')", 16).unwrap(), "s");
        assert_eq!(name_at("SELECT", 40), None);
    }

    #[test]
    fn a_script_may_make_what_is_missing() {
        let made = |text: &str| {
            let script = parse("t.sql", text, &mut Symbols::new()).unwrap();
            let error = ServerError { position: Some(15), ..ServerError::new(MISSING[0], "") };
            may_be_made(&script, &error, "SELECT * FROM app.t", &["make_tables".to_owned()])
        };
        assert!(made("CREATE TEMP TABLE t (v int);\nSELECT * FROM app.t;\n"));
        assert!(made("SELECT 1 AS v INTO TEMP t;\nSELECT * FROM app.t;\n"));
        assert!(made("DO $$ BEGIN EXECUTE 'CREATE TABLE app.t ()'; END $$;\nSELECT * FROM app.t;\n"));
        assert!(made("SELECT make_tables();\nSELECT * FROM app.t;\n"));
        assert!(!made("CREATE TEMP TABLE other (v int);\nSELECT * FROM app.t;\n"));
        assert!(!made("INSERT INTO other SELECT * FROM app.t;\nSELECT * FROM app.t;\n"));
        assert!(!made("SELECT * FROM app.t;\n"));
    }
}
