//! A dump that can be loaded in any schema.
//!
//! `pg_dump` writes the schema before each name. It is removed by tokens, and never inside of literals,
//! but for the names of sequences (`nextval('public.orders_id_seq'::regclass)`).

use std::collections::BTreeSet;

use isobench_script::lexer::{Kind, Token, statements, tokens, words};

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
/// It has objects in several schemas, needs an extension, or has rows for psql.
pub fn placeable(dump: &str) -> Result<String, DumpError> {
    let restricts = |line: &&str| !line.starts_with("\\restrict ") && !line.starts_with("\\unrestrict ");
    let text: String = dump.split_inclusive('\n').filter(restricts).collect();
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
        if !is_of_session(&found) {
            placed.push_str(&without(statement, &schema));
            placed.push_str(";\n");
        }
    }
    Ok(placed)
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
    let wider = ["SCHEMA", "EXTENSION", "DATABASE", "ROLE", "PUBLICATION", "SUBSCRIPTION", "DEFAULT"];
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
    }
}
