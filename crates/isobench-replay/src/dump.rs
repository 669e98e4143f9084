//! A dump that can be loaded in any schema.
//!
//! `pg_dump` writes the schema before each name. It is removed by tokens, and never inside of literals,
//! but for the names of sequences (`nextval('public.orders_id_seq'::regclass)`).

use std::collections::BTreeSet;

use isobench_script::lexer::{Kind, Token, statements, tokens, words};
use isobench_script::sql_statements;

/// Why a dump can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// It has objects in several schemas.
    #[error(
        "the dump has objects in several schemas ({0}); isobench makes the tables in one of its own: dump one schema (pg_dump --schema), and give that by --setup"
    )]
    Schemas(String),
    /// It needs an extension.
    #[error(
        "the dump needs the extension {0}, which concerns the whole database: leave out what uses it, and give the rest by --setup"
    )]
    Extension(String),
    /// It has a command of psql's, or something else that isn't SQL.
    #[error("the dump has more than SQL: {0}")]
    NotSql(String),
    /// Backslashes in its literals mean something else.
    #[error(
        "the dump sets standard_conforming_strings, so backslashes in its literals mean something else: dump with \
         PGOPTIONS='-c standard_conforming_strings=on'"
    )]
    Strings,
    /// Its rows can't be read.
    #[error("the rows of the dump follow a COPY, which isn't read: use pg_dump --inserts")]
    Copy,
}

/// Kinds of objects that have a schema.
const OBJECTS: [&str; 9] =
    ["TABLE", "SEQUENCE", "VIEW", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE", "AGGREGATE", "COLLATION"];

/// The dump without schemas, owners, rights and settings of the session.
///
/// # Errors
/// It has objects in several schemas, needs an extension, or has more than SQL.
pub fn placeable(dump: &str) -> Result<String, DumpError> {
    let text = without_restriction(dump);
    let all = statements(&text);
    let mut schemas = BTreeSet::new();
    for statement in &all {
        schemas.extend(schema_of(statement));
    }
    if schemas.len() > 1 {
        return Err(DumpError::Schemas(schemas.into_iter().collect::<Vec<_>>().join(", ")));
    }
    let schema = schemas.into_iter().next().unwrap_or_else(|| "public".to_owned());
    let mut placed = String::new();
    for statement in all {
        let found = words(statement);
        let is = |place: usize, word: &str| found.get(place).is_some_and(|token| token.is(word));
        if is(0, "CREATE") && is(1, "EXTENSION") {
            let name = found.iter().skip(2).find(|token| !token.is_any(&["IF", "NOT", "EXISTS"]));
            let name = name.and_then(Token::name).unwrap_or_default();
            if name != "plpgsql" {
                return Err(DumpError::Extension(name));
            }
        }
        if is(0, "COPY") {
            return Err(DumpError::Copy);
        }
        if sets_strings(&found) {
            return Err(DumpError::Strings);
        }
        if !is_of_session(&found) {
            placed.push_str(&without(statement, &schema));
            placed.push_str(";\n");
        }
    }
    let (written, read) = (statements(&placed).len(), require_sql(&placed)?);
    if written == read {
        Ok(placed)
    } else {
        Err(DumpError::NotSql(format!("its {written} statements would be executed as {read}")))
    }
}

/// Makes sure that a text is read as SQL alone where it is executed, and that nothing after it is taken for
/// a part of it. Returns the number of its statements.
///
/// # Errors
/// It isn't.
pub fn require_sql(text: &str) -> Result<usize, DumpError> {
    const AFTER: &str = "SELECT 1;";
    if text.contains('\0') {
        return Err(DumpError::NotSql("it has a zero byte".to_owned()));
    }
    let followed = format!("{text}\n{AFTER}\n{AFTER}\n");
    let read = sql_statements("its SQL", &followed).map_err(|error| DumpError::NotSql(error.to_string()))?;
    match read.as_slice() {
        [own @ .., (_, one), (_, other)] if one == AFTER && other == AFTER => Ok(own.len()),
        _ => Err(DumpError::NotSql("it ends within a statement".to_owned())),
    }
}

/// A dump without the commands by which newer versions of `pg_dump` enclose it for psql, each at the start
/// of a line outside of literals and comments.
fn without_restriction(dump: &str) -> String {
    let mut kept = String::with_capacity(dump.len());
    let mut rest = tokens(dump).into_iter().peekable();
    while let Some(token) = rest.next() {
        let starts = kept.is_empty() || kept.ends_with('\n');
        let restricts = |next: &Token<'_>| next.is_any(&["restrict", "unrestrict"]);
        if !(token.text == "\\" && starts && rest.peek().is_some_and(restricts)) {
            kept.push_str(token.text);
            continue;
        }
        // The line break is a part of blanks, or of a comment.
        while rest.next_if(|token| !token.text.contains('\n')).is_some() {}
    }
    kept
}

/// True for a statement that lets backslashes in literals escape what follows them: where it is executed,
/// literals would end elsewhere than where they were seen to end.
fn sets_strings(found: &[Token<'_>]) -> bool {
    const NAME: &str = "standard_conforming_strings";
    let names = |token: &Token<'_>| token.text.to_ascii_lowercase().contains(NAME);
    let on = |token: &Token<'_>| token.is("on") || token.text == "'on'";
    let inserts = found.first().is_some_and(|first| first.is("INSERT"));
    let values = inserts && !found.iter().any(|token| token.is("set_config"));
    let harmless = found.first().is_some_and(|first| first.is("SET")) && found.iter().any(on);
    found.iter().any(names) && !harmless && !values
}

/// The schema of the object that a statement makes.
fn schema_of(statement: &str) -> Option<String> {
    let found = words(statement);
    let made = found
        .first()?
        .is("CREATE")
        .then(|| found.iter().take(5).position(|token| token.is_any(&OBJECTS)))??;
    let mut at = made + 1;
    while found.get(at)?.is_any(&["IF", "NOT", "EXISTS"]) {
        at += 1;
    }
    found.get(at + 1)?.is(".").then(|| found[at].name()).flatten()
}

/// True for a statement that concerns the session, the database or roles.
fn is_of_session(found: &[Token<'_>]) -> bool {
    let is = |place: usize, words: &[&str]| found.get(place).is_some_and(|token| token.is_any(words));
    let configures = is(0, &["SELECT"]) && found.iter().take(5).any(|token| token.is("set_config"));
    let owned = is(0, &["ALTER"]) && found.windows(2).any(|pair| pair[0].is("OWNER") && pair[1].is("TO"));
    let wider =
        ["SCHEMA", "EVENT", "EXTENSION", "DATABASE", "ROLE", "PUBLICATION", "SUBSCRIPTION", "DEFAULT"];
    let concerns = is(0, &["CREATE", "ALTER", "DROP"]) && is(1, &wider);
    let remarks = is(0, &["COMMENT"]);
    is(0, &["SET", "GRANT", "REVOKE"]) || configures || owned || concerns || remarks
}

/// A statement without a schema before its names.
fn without(statement: &str, schema: &str) -> String {
    let all = tokens(statement);
    let mut out = String::new();
    let mut at = 0;
    let next =
        |from: usize| all[from..].iter().find(|token| !matches!(token.kind, Kind::Blank | Kind::Comment));
    while at < all.len() {
        let token = all[at];
        let qualifies = token.name().is_some_and(|name| name == schema)
            && all.get(at + 1).is_some_and(|next| next.is("."))
            && !at.checked_sub(1).is_some_and(|before| all[before].is("."));
        if qualifies {
            at += 2;
            continue;
        }
        let called = all[..at]
            .iter()
            .rev()
            .filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment))
            .take(2)
            .collect::<Vec<_>>();
        let of_sequence = called.first().is_some_and(|open| open.is("("))
            && called.get(1).is_some_and(|name| name.is_any(&["nextval", "setval", "currval"]));
        let cast = next(at + 1).is_some_and(|next| next.is("::"))
            && all[at + 1..]
                .iter()
                .filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment))
                .nth(1)
                .is_some_and(|of| of.is("regclass"));
        if token.kind == Kind::Text && (of_sequence || cast) {
            let plain = format!("'{schema}.");
            let quoted = format!("'\"{schema}\".");
            let rest = token.text.strip_prefix(&plain).or_else(|| token.text.strip_prefix(&quoted));
            match rest {
                Some(rest) => out.extend(["'", rest]),
                None => out.push_str(token.text),
            }
        } else if !(token.kind == Kind::Comment && token.text.starts_with("--")) {
            out.push_str(token.text);
        }
        at += 1;
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_removed_but_not_from_literals() {
        let dump = "\\restrict x\nSET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n\
            CREATE TABLE public.t (\n    id integer DEFAULT nextval('public.t_id_seq'::regclass),\n    v text DEFAULT \
            'public.x'::text\n);\nALTER TABLE public.t OWNER TO me;\nINSERT INTO public.t VALUES (1, 'public.y; z');\n\
            SELECT pg_catalog.setval('public.t_id_seq', 1, true);\nALTER TABLE ONLY public.t ADD CONSTRAINT f FOREIGN KEY \
            (id) REFERENCES \"public\".u(id);\n\\unrestrict x\n";
        assert_eq!(
            placeable(dump).unwrap(),
            "CREATE TABLE t (\n    id integer DEFAULT nextval('t_id_seq'::regclass),\n    v text DEFAULT \
             'public.x'::text\n);\nINSERT INTO t VALUES (1, 'public.y; z');\nSELECT pg_catalog.setval('t_id_seq', 1, \
             true);\nALTER TABLE ONLY t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES u(id);\n"
        );
    }

    #[test]
    fn what_needs_more_than_a_schema_is_refused() {
        let several = placeable("CREATE TABLE a.t (v int); CREATE VIEW b.v AS SELECT 1;").unwrap_err();
        assert_eq!(several, DumpError::Schemas("a, b".to_owned()));
        let extension = placeable("CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;").unwrap_err();
        assert_eq!(extension, DumpError::Extension("citext".to_owned()));
        assert_eq!(placeable("COPY public.t (v) FROM stdin;").unwrap_err(), DumpError::Copy);
        for strings in [
            "SET standard_conforming_strings = off;",
            "SELECT 1, 2, 3, 4, set_config('standard_conforming_strings', 'off', false);",
            "DO 'SET standard_conforming_strings = off';",
        ] {
            assert_eq!(placeable(strings).unwrap_err(), DumpError::Strings, "{strings}");
        }
        assert_eq!(placeable("SET standard_conforming_strings = on;").unwrap(), "");
        assert_eq!(
            placeable("CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION public.f();").unwrap(),
            ""
        );
    }

    #[test]
    fn lines_within_literals_comments_and_bodies_stay() {
        let dump = "\\restrict a1\n-- x\n\\unrestrict a2\nINSERT INTO t VALUES ('a\n\\restrict b\n\\unrestrict c\nd', \
            E'e\n\\restrict f\n', \"g\n\\restrict h\n\");\nCREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT '\n\
            \\restrict i\n' $$;\n\\restrict j -- k\nSELECT 1;\n\\unrestrict j";
        assert_eq!(
            placeable(dump).unwrap(),
            "INSERT INTO t VALUES ('a\n\\restrict b\n\\unrestrict c\nd', E'e\n\\restrict f\n', \"g\n\\restrict \
             h\n\");\nCREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT '\n\\restrict i\n' $$;\nSELECT 1;\n"
        );
    }

    #[test]
    fn a_command_of_psql_is_refused_wherever_it_stands() {
        for dump in [
            "CREATE TABLE t (v int);\n\\! id\n",
            "CREATE TABLE t (v int) \\shell id\n;",
            "INSERT INTO t VALUES ('a\\', '\\! id');\nSELECT 1 \\g |id\n",
            "\\restrict a\n\\! id\n\\unrestrict a\n",
            "CREATE TABLE t (v int); \\restrict a\nSELECT 1 \\o |id\n",
            "INSERT INTO t VALUES ('a",
        ] {
            assert!(matches!(placeable(dump), Err(DumpError::NotSql(_))), "{dump}");
        }
    }
}
