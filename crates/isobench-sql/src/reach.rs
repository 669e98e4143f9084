//! How far a statement of a setup reaches: the schema of its session, its database, or the whole server.
//!
//! Read from tokens, so that a word in a comment, a value or the name of a column concerns nothing.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

/// What a statement concerns beyond the schema of its session, with the word that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Something else in the database: another schema, an extension, a publication.
    Database(&'static str),
    /// Roles, which all databases of the server share.
    Roles(&'static str),
    /// Databases, tablespaces or settings of the server.
    Server(&'static str),
}

impl Reach {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Reach::Database(word) | Reach::Roles(word) | Reach::Server(word) => word,
        }
    }
}

/// Kinds of objects outside of the session's schema, as statements name them.
const KINDS: [Reach; 14] = [
    Reach::Database("schema"),
    Reach::Database("extension"),
    Reach::Database("publication"),
    Reach::Database("subscription"),
    Reach::Database("server"),
    Reach::Database("language"),
    Reach::Database("event"),
    Reach::Roles("role"),
    Reach::Roles("user"),
    Reach::Roles("group"),
    Reach::Roles("authorization"),
    Reach::Server("database"),
    Reach::Server("tablespace"),
    Reach::Server("system"),
];

/// Verbs at the beginning of a statement after which such a kind is a keyword, if a name follows it
/// (PostgreSQL manual, "SQL Commands").
const VERBS: [&str; 3] = ["create", "alter", "drop"];

/// Other words after which it is one.
const SETS: [&str; 3] = ["set", "session", "local"];

/// Those before `SCHEMA` alone.
const BEFORE_SCHEMA: [&str; 3] = ["with", "in", "foreign"];

/// Statements in which it is one after `ON`.
const ABOUT: [&str; 3] = ["comment", "grant", "revoke"];

/// Words of procedures that a statement may follow.
const BLOCKS: [&str; 5] = ["begin", "then", "else", "loop", "as"];

/// Words before the setting `search_path` where it is set.
const SETTING: [&str; 4] = ["set", "local", "session", "reset"];

/// The setting, and the schema that every database has.
const SEARCH_PATH: Reach = Reach::Database("search_path");
const PUBLIC: Reach = Reach::Database("public");

/// Statements that write what their first names denote.
const WRITING: [&str; 8] = ["create", "alter", "drop", "insert", "update", "delete", "truncate", "copy"];

/// Words after which they name other things.
const AFTER_TARGET: [&str; 6] = ["as", "select", "values", "set", "using", "execute"];

/// Functions and casts that make a name of a literal.
const NAMING: [&str; 6] = ["nextval", "setval", "currval", "lastval", "regclass", "to_regclass"];

/// Functions and statements by which a literal changes the session, or becomes SQL.
const EXECUTING: [&str; 4] = ["set_config", "execute", "format", "query_to_xml"];

/// Returns how far a statement reaches; `None`: no further than the schema of its session.
pub fn reach(statement: &str) -> Option<Reach> {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, statement).tokenize() else {
        return by_words(statement, true);
    };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)).collect();
    let of_tokens = (0..tokens.len()).filter_map(|place| of_token(&tokens, place)).max();
    of_tokens.max(of_literals(&tokens))
}

/// True if a statement makes, changes or fills something in the schema `public`.
pub fn writes_public(statement: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, statement).tokenize() else { return false };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)).collect();
    let verb = tokens.first().and_then(keyword).unwrap_or_default();
    let names = |token: &&Token| {
        **token != Token::LParen && keyword(token).is_none_or(|word| !is_any(word, &AFTER_TARGET))
    };
    let target = tokens.iter().take_while(names).count();
    is_any(verb, &WRITING) && (0..target).any(|place| of_token(&tokens, place) == Some(PUBLIC))
}

/// What a token shows, by those next to it.
fn of_token(tokens: &[Token], place: usize) -> Option<Reach> {
    let Token::Word(word) = &tokens[place] else { return None };
    let before = place.checked_sub(1).and_then(|before| tokens.get(before));
    let after = tokens.get(place + 1);
    if word.value == "public" || word.quote_style.is_none() && word.value.eq_ignore_ascii_case("public") {
        let qualifies = after == Some(&Token::Period) && before != Some(&Token::Period);
        return qualifies.then_some(PUBLIC);
    }
    let before = before.and_then(keyword)?;
    let written = keyword(&tokens[place])?;
    if written.eq_ignore_ascii_case(SEARCH_PATH.word()) {
        return is_any(before, &SETTING).then_some(SEARCH_PATH);
    }
    let kind = *KINDS.iter().find(|kind| written.eq_ignore_ascii_case(kind.word()))?;
    let named = matches!(after, Some(Token::Word(_) | Token::SingleQuotedString(_)));
    let first = tokens.first().and_then(keyword).unwrap_or_default();
    let is_keyword = is_any(before, &VERBS) && begins(tokens, place - 1)
        || is_any(before, &SETS)
        || is_any(before, &BEFORE_SCHEMA) && kind.word() == "schema"
        || before.eq_ignore_ascii_case("on") && is_any(first, &ABOUT);
    (named && is_keyword).then_some(kind)
}

fn is_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// True if a statement begins there.
fn begins(tokens: &[Token], place: usize) -> bool {
    match place.checked_sub(1).map(|before| &tokens[before]) {
        None | Some(Token::SemiColon) => true,
        Some(token) => keyword(token).is_some_and(|word| is_any(word, &BLOCKS)),
    }
}

/// An unquoted word.
fn keyword(token: &Token) -> Option<&str> {
    match token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value),
        _ => None,
    }
}

/// What literals show that are names, or SQL.
fn of_literals(tokens: &[Token]) -> Option<Reach> {
    let says = |words: &[&str]| {
        tokens
            .iter()
            .filter_map(keyword)
            .any(|found| words.iter().any(|word| found.eq_ignore_ascii_case(word)))
    };
    let (executes, names) = (says(&EXECUTING), says(&NAMING));
    let has_body = says(&["function", "procedure", "do"]);
    let of_literal = |token: &Token| match token {
        Token::DollarQuotedString(body) => reach(&body.value),
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => {
            let as_body = if has_body { reach(text) } else { None };
            let as_name = if executes || names { by_words(text, executes) } else { None };
            as_body.max(as_name)
        }
        _ => None,
    };
    tokens.iter().filter_map(of_literal).max()
}

/// What a text shows that can't be split, or that becomes a name: any such word; that of a kind only if the
/// text may be a statement.
fn by_words(text: &str, any: bool) -> Option<Reach> {
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = || text.split(move |other| !letter(other));
    let kinds = if any { KINDS.as_slice() } else { &[] };
    let found = kinds.iter().chain([&SEARCH_PATH, &PUBLIC]);
    found.filter(|reach| words().any(|word| word.eq_ignore_ascii_case(reach.word()))).max().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(statement: &str) -> Option<&'static str> {
        reach(statement).map(Reach::word)
    }

    #[test]
    fn what_lies_elsewhere_is_found() {
        assert_eq!(word("CREATE TABLE Public.t (v int)"), Some("public"));
        assert_eq!(word("CREATE TABLE \"public\".t (v int)"), Some("public"));
        assert_eq!(word("SELECT set_config('search_path', '', false)"), Some("search_path"));
        assert_eq!(word("SET LOCAL search_path TO app"), Some("search_path"));
        assert_eq!(word("CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public"), Some("schema"));
        assert_eq!(word("CREATE EXTENSION citext"), Some("extension"));
        assert_eq!(word("CREATE SCHEMA app"), Some("schema"));
        assert_eq!(word("ALTER TABLE role SET SCHEMA other"), Some("schema"));
        assert_eq!(reach("CREATE ROLE r"), Some(Reach::Roles("role")));
        assert_eq!(reach("SET SESSION AUTHORIZATION r"), Some(Reach::Roles("authorization")));
        assert_eq!(reach("ALTER ROLE role SET work_mem = 1"), Some(Reach::Roles("role")));
        assert_eq!(reach("ALTER DATABASE d SET search_path = app"), Some(Reach::Server("database")));
        assert_eq!(word("INSERT INTO t SELECT set_config('role', 'x', false)"), Some("role"));
        assert_eq!(word("CREATE TABLE t (v int DEFAULT nextval('public.s'))"), Some("public"));
        assert_eq!(word("ALTER TABLE t ALTER v SET DEFAULT nextval('public.s'::regclass)"), Some("public"));
        assert_eq!(word("CREATE TABLE t (v public.seen DEFAULT 'PUBLIC')"), Some("public"));
    }

    #[test]
    fn what_is_written_in_public_is_found() {
        for written in [
            "CREATE TABLE IF NOT EXISTS public.t (v int)",
            "ALTER TABLE ONLY \"public\".t ADD CONSTRAINT c CHECK (v > 0)",
            "INSERT INTO Public.t VALUES (1)",
            "DELETE FROM public.t",
            "CREATE INDEX ON public.t (v)",
            "DROP TABLE IF EXISTS public.t",
            "COPY public.t FROM stdin",
        ] {
            assert!(writes_public(written), "{written}");
        }
        for read in [
            "CREATE TABLE t AS SELECT * FROM public.t",
            "CREATE TABLE t (v int REFERENCES public.u)",
            "INSERT INTO t SELECT * FROM public.t",
            "UPDATE t SET v = u.v FROM public.u",
            "DELETE FROM t USING public.u",
            "SELECT * FROM public.t",
            "CREATE TABLE t (v int) -- public.t",
        ] {
            assert!(!writes_public(read), "{read}");
        }
    }

    #[test]
    fn bodies_of_functions_are_read() {
        assert_eq!(word("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SET ROLE r'"), Some("role"));
        assert_eq!(word("DO $$ BEGIN EXECUTE 'CREATE SCHEMA ' || name; END $$"), Some("schema"));
        assert_eq!(word("DO $$ BEGIN CREATE SCHEMA x; END $$"), Some("schema"));
        assert_eq!(word("DO $$ BEGIN -- public.t, a role\n PERFORM 1; END $$"), None);
        assert_eq!(
            word("CREATE FUNCTION f() RETURNS int LANGUAGE sql SET search_path = app AS $$SELECT 1$$"),
            Some("search_path")
        );
    }

    #[test]
    fn words_that_are_names_or_values_concern_nothing() {
        for statement in [
            "CREATE TABLE users (id int PRIMARY KEY, role text NOT NULL, public bool, extension text, schema text)",
            "INSERT INTO users VALUES (1, 'a public role', 'it''s a database', 'CREATE SCHEMA x')",
            "INSERT INTO users (role, schema, database) VALUES (1, 2, 3)",
            "UPDATE users SET role = 'user', schema = 'public' WHERE public",
            "SELECT users.public, schema.id FROM users JOIN schema ON schema.id = users.id",
            "CREATE TABLE role (id int)",
            "ALTER TABLE ONLY role ADD CONSTRAINT r PRIMARY KEY (id)",
            "CREATE UNIQUE INDEX u ON role (id)",
            "ALTER TABLE ONLY role ALTER COLUMN id SET DEFAULT nextval('role_id')",
            "ALTER SEQUENCE s OWNED BY database.id",
            "CREATE TABLE publication_list (v int) -- CREATE SCHEMA public",
            "CREATE /* EXTENSION citext */ TABLE t (v int)",
            "CREATE TYPE seen AS ENUM ('PUBLIC', 'PRIVATE')",
            "CREATE TABLE t (v seen DEFAULT 'PUBLIC'::seen)",
            "GRANT SELECT ON users TO PUBLIC",
            "ALTER TABLE users ALTER role TYPE varchar(9), DROP schema CASCADE",
            "CREATE TRIGGER t AFTER INSERT ON role FOR EACH ROW EXECUTE FUNCTION f()",
            "WITH role AS (SELECT 1) INSERT INTO t SELECT * FROM role",
            "SET default_tablespace = ''",
        ] {
            assert_eq!(reach(statement), None, "{statement}");
        }
    }
}
