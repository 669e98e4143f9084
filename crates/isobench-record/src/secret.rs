//! Which texts and values may hold a password, or another secret that no capture may have. In doubt
//! they do: what is hidden without need costs little.

use isobench_script::lexer::{Kind, Token, tokens};

/// What stands for all that is hidden of a statement that may hold a password.
pub(crate) const HIDDEN: &str = "***";

/// Objects whose definitions have no place for a password: after CREATE and ALTER.
const HARMLESS_OBJECTS: [&str; 36] = [
    "table",
    "temp",
    "temporary",
    "unlogged",
    "global",
    "local",
    "index",
    "unique",
    "view",
    "materialized",
    "recursive",
    "sequence",
    "function",
    "procedure",
    "routine",
    "aggregate",
    "trigger",
    "constraint",
    "type",
    "domain",
    "schema",
    "extension",
    "rule",
    "policy",
    "operator",
    "cast",
    "collation",
    "conversion",
    "statistics",
    "publication",
    "text",
    "event",
    "language",
    "default",
    "large",
    "tablespace",
];

/// Objects whose definitions have one.
const OBJECTS: [&str; 8] =
    ["role", "user", "group", "subscription", "server", "system", "database", "foreign"];

/// Words with which a command begins, other than those of [`lead`].
const COMMANDS: [&str; 47] = [
    "select",
    "insert",
    "update",
    "delete",
    "merge",
    "with",
    "values",
    "table",
    "lock",
    "call",
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "set",
    "reset",
    "show",
    "discard",
    "deallocate",
    "declare",
    "fetch",
    "move",
    "close",
    "explain",
    "analyze",
    "analyse",
    "vacuum",
    "copy",
    "listen",
    "unlisten",
    "notify",
    "truncate",
    "drop",
    "grant",
    "revoke",
    "comment",
    "reindex",
    "refresh",
    "cluster",
    "checkpoint",
    "prepare",
    "security",
    "reassign",
];

/// Functions that take a password or a key, or SQL for elsewhere.
const FUNCTIONS: [&str; 8] =
    ["crypt", "hmac", "encrypt", "decrypt", "encrypt_iv", "decrypt_iv", "pgp_pub_decrypt", "pgp_sym_decrypt"];

/// The beginnings of the names of more of them.
const FAMILIES: [&str; 3] = ["dblink", "pgp_sym_", "pgp_pub_"];

/// Parts of names of functions that take one by all appearance.
const TELLING: [&str; 4] = ["passw", "passphrase", "secret", "credential"];

/// Words before a name that make it a relation's, whatever it is called.
const BEFORE_RELATION: [&str; 11] =
    ["into", "table", "exists", "references", "on", "join", "as", "with", "from", "update", "recursive"];

/// Catalogs that show definitions of such objects, and what other sessions execute.
const CATALOGS: [&str; 13] = [
    "pg_authid",
    "pg_shadow",
    "pg_user_mapping",
    "pg_user_mappings",
    "pg_subscription",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_db_role_setting",
    "pg_file_settings",
    "pg_stat_activity",
    "pg_stat_statements",
    "pg_cursors",
    "pg_prepared_statements",
];

/// How deep literals of literals are looked into.
const DEEPEST: usize = 3;

/// True if a text may hold a password: a statement in it, or the body of one.
pub(crate) fn may_hold(tokens: &[Token<'_>]) -> bool {
    let words: Vec<Token<'_>> = significant(tokens).collect();
    words.split(|token| token.text == ";").any(|statement| lead(statement).is_some() || of_command(statement))
        || anywhere(&words, 0)
}

/// The same of a text of which it isn't certain how a server reads it.
pub(crate) fn unread_may_hold(text: &str) -> bool {
    let harmless = ["select", "insert", "update", "delete", "with", "values"];
    let suspicious = [
        "passw",
        "role",
        "user",
        "group",
        "server",
        "subscription",
        "system",
        "database",
        "options",
        "dblink",
        "crypt",
        "program",
        "execute",
        "set_config",
        "secret",
        "credential",
        "passphrase",
        "pgp_",
        "hmac",
        "://",
    ];
    let first = tokens(text).into_iter().find(|token| !is_blank(token));
    !first.is_some_and(|first| first.is_any(&harmless)) || suspicious.iter().any(|part| contains(text, part))
}

/// True if a value, or what is between the marks of a literal, may hold a password.
pub(crate) fn value_may_hold(text: &str) -> bool {
    value_holds(text, 0)
}

/// The number of words of a statement of which nothing else may be kept; `None` if the words may stay.
/// The statement has neither blanks nor comments.
pub(crate) fn lead(statement: &[Token<'_>]) -> Option<usize> {
    let first = statement.first()?;
    let at = |place: usize| statement.get(place);
    if first.is_any(&["do", "execute"]) {
        return Some(1);
    }
    if first.is_any(&["create", "alter"]) {
        let replaces =
            at(1).is_some_and(|token| token.is("or")) && at(2).is_some_and(|token| token.is("replace"));
        let object = if replaces { 3 } else { 1 };
        return at(object).is_some_and(|token| !token.is_any(&HARMLESS_OBJECTS)).then_some(1 + object);
    }
    if first.is("import") {
        return Some(1);
    }
    if first.is("set") {
        let name = 1 + usize::from(at(1).is_some_and(|token| token.is_any(&["session", "local"])));
        return custom_setting(statement.get(name..)?).map(|length| name + length);
    }
    let unknown = first.kind == Kind::Word && !first.is_any(&COMMANDS);
    let tells = |token: &Token<'_>| TELLING.iter().any(|part| contains(token.text, part));
    (unknown && statement.iter().any(tells)).then_some(1)
}

/// True for commands whose literals may be passwords though their words may stay.
fn of_command(statement: &[Token<'_>]) -> bool {
    let Some(first) = statement.first() else { return false };
    let pair = |found: &dyn Fn(&Token<'_>, &Token<'_>) -> bool| {
        statement.windows(2).any(|pair| found(&pair[0], &pair[1]))
    };
    if first.is("prepare") {
        return !statement.get(1).is_some_and(|token| token.is("transaction"));
    }
    if first.is("show") {
        return custom_setting(&statement[1..]).is_some();
    }
    if first.is_any(&["create", "alter"]) {
        let sets =
            |place: usize| statement[place].is("set") && custom_setting(&statement[place + 1..]).is_some();
        return pair(&|one, other| one.is("options") && other.is("("))
            || (0..statement.len()).any(sets)
            || executes(statement);
    }
    first.is("explain") && executes(statement)
}

/// True if there is an `EXECUTE name (…)`.
fn executes(statement: &[Token<'_>]) -> bool {
    let of_trigger = ["function", "procedure"];
    statement
        .windows(3)
        .any(|three| three[0].is("execute") && !three[1].is_any(&of_trigger) && three[2].is("("))
}

/// The number of tokens of the name of a setting that isn't the server's own: `my.password`.
fn custom_setting(tokens: &[Token<'_>]) -> Option<usize> {
    match tokens {
        [name, ..] if name.kind == Kind::Name && name.text.contains('.') => Some(1),
        [_, dot, name, ..] if dot.is(".") && matches!(name.kind, Kind::Word | Kind::Name) => Some(3),
        _ => None,
    }
}

/// True if there is something at any place that may hold a password, whatever the command is.
fn anywhere(words: &[Token<'_>], depth: usize) -> bool {
    let at = |place: usize, known: &[&str]| words.get(place).is_some_and(|token| token.is_any(known));
    let of_value = |place: usize| {
        words
            .get(place)
            .is_some_and(|token| matches!(token.kind, Kind::Text | Kind::Parameter | Kind::Number))
    };
    (0..words.len()).any(|place| {
        let token = &words[place];
        match token.kind {
            Kind::Text => {
                let value = token.value();
                let inner = value.as_deref().or(token.literal().map(|(_, inner, _)| inner));
                inner.is_some_and(|inner| value_holds(inner, depth))
            }
            Kind::Word | Kind::Name => {
                let replaces = at(place + 1, &["or"]) && at(place + 2, &["replace"]);
                let defines = token.is_any(&["create", "alter"])
                    && at(if replaces { place + 3 } else { place + 1 }, &OBJECTS);
                let imports = token.is("import") && at(place + 1, &["foreign"]);
                let password = token.is_any(&["password", "passwd"]) && of_value(place + 1);
                let runs = token.is("program") && of_value(place + 1);
                defines || imports || password || runs || shows(token) || calls(words, place)
            }
            _ => false,
        }
    })
}

/// True for the name of a catalog that shows secrets.
fn shows(token: &Token<'_>) -> bool {
    let inner = token.text.trim_matches('"');
    CATALOGS.iter().any(|catalog| inner.eq_ignore_ascii_case(catalog))
}

/// True if a function that takes a password is called at this place, with something that may be one.
fn calls(words: &[Token<'_>], place: usize) -> bool {
    if !words.get(place + 1).is_some_and(|open| open.is("(")) {
        return false;
    }
    let name = words[place].text.trim_matches('"').to_ascii_lowercase();
    let arguments = &words[place + 2..];
    if name == "set_config" || name == "current_setting" {
        // Only the names of the server's own settings have no dot.
        return match arguments.first() {
            Some(setting) if setting.kind == Kind::Text => setting.text.contains('.'),
            _ => true,
        };
    }
    let qualified = place >= 2 && words[place - 1].is(".");
    let before = if qualified { place.checked_sub(3) } else { place.checked_sub(1) };
    let relation = before.is_some_and(|before| words[before].is_any(&BEFORE_RELATION));
    let known = FUNCTIONS.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family));
    let tells = !relation && TELLING.iter().any(|part| name.contains(part));
    (known || tells) && takes_value(arguments)
}

/// True if there is a value among the arguments of a call, whose parenthesis is open. The arguments of
/// `gen_salt` are no secrets.
fn takes_value(arguments: &[Token<'_>]) -> bool {
    let (mut depth, mut salt) = (1_usize, None);
    for (at, token) in arguments.iter().enumerate() {
        match token.text {
            "(" => {
                depth += 1;
                if salt.is_none() && at > 0 && arguments[at - 1].is("gen_salt") {
                    salt = Some(depth);
                }
            }
            ")" => {
                if salt == Some(depth) {
                    salt = None;
                }
                depth -= 1;
                if depth == 0 {
                    return false;
                }
            }
            _ if salt.is_none() && matches!(token.kind, Kind::Text | Kind::Parameter | Kind::Number) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

fn value_holds(text: &str, depth: usize) -> bool {
    if text.starts_with("SCRAM-SHA-256$") || is_md5(text) || has_credentials(text) || names_password(text) {
        return true;
    }
    let suspicious = ["create", "alter", "import", "program", "crypt", "hmac", "dblink", "pgp_", "config"];
    let worth = |part: &&str| contains(text, part);
    if depth == DEEPEST || !(suspicious.iter().any(worth) || TELLING.iter().any(worth)) {
        return false;
    }
    // Words across the literals within, such as `'ALTER ' || 'USER …'`.
    let letters = |letter: char| !(letter.is_alphanumeric() || letter == '_');
    let mut makes = false;
    for word in text.split(letters).filter(|word| !word.is_empty()) {
        let is = |known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
        if makes && is(&OBJECTS) {
            return true;
        }
        makes = is(&["create", "alter"]);
    }
    let words: Vec<Token<'_>> = tokens(text).into_iter().filter(|token| !is_blank(token)).collect();
    anywhere(&words, depth + 1)
}

/// True for the hash of a password, as PostgreSQL stores it.
fn is_md5(text: &str) -> bool {
    let digits = text.strip_prefix("md5").filter(|digits| digits.len() == 32);
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// True if a text has an address with a password: `scheme://user:password@host`.
fn has_credentials(text: &str) -> bool {
    text.match_indices("://").any(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let authority = rest.split(['/', '?', '#', ' ', '\n', '"', '\'']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
            || rest
                .split_whitespace()
                .next()
                .is_some_and(|word| word.split_once(':').is_some_and(|(_, after)| after.contains('@')))
    })
}

/// True if a text assigns a password, as connection strings and options do: `password=…`.
fn names_password(text: &str) -> bool {
    ["password", "passwd", "pwd", "passphrase"].iter().any(|name| {
        let mut rest = text;
        while let Some(at) = position(rest, name) {
            rest = &rest[at + name.len()..];
            if rest.trim_start_matches([' ', '\t', '\n', '\r', '"', '\'']).starts_with('=') {
                return true;
            }
        }
        false
    })
}

/// The tokens other than blanks and comments.
pub(crate) fn significant<'a>(tokens: &[Token<'a>]) -> impl Iterator<Item = Token<'a>> {
    tokens.iter().copied().filter(|token| !is_blank(token))
}

fn is_blank(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Blank | Kind::Comment)
}

/// True if a text has a part in letters of either case. The part is in lower case.
fn contains(text: &str, part: &str) -> bool {
    position(text, part).is_some()
}

fn position(text: &str, part: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = part.as_bytes()[0];
    let starts = |byte: u8| byte.to_ascii_lowercase() == first;
    (0..(bytes.len() + 1).saturating_sub(part.len()))
        .find(|at| starts(bytes[*at]) && bytes[*at..*at + part.len()].eq_ignore_ascii_case(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_passwords_are_found() {
        for sql in [
            "create user a password 'x'",
            "ALTER /* app */ USER a PASSWORD 'x'",
            "ALTER --x\n USER a PASSWORD 'x'",
            "create/*x*/user a password x",
            "CREATE SUBSCRIPTION s CONNECTION 'x' PUBLICATION p",
            "alter subscription s connection 'x'",
            "create user mapping for a server b options (password 'x')",
            "CREATE FOREIGN TABLE f(a int) SERVER s OPTIONS (x 'y')",
            "ALTER TABLE f OPTIONS (SET password 'x')",
            "IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c OPTIONS (x 'y')",
            "ALTER SYSTEM SET primary_conninfo = 'x'",
            "ALTER DATABASE a SET my.x = 'y'",
            "ALTER FUNCTION f() SET my.x = 'y'",
            "BEGIN; ALTER ROLE a PASSWORD 'x'; COMMIT",
            "DO $$BEGIN ALTER ROLE a PASSWORD 'x'; END$$",
            "DO 'BEGIN EXECUTE ''AL'' || ''TER''; END'",
            "PREPARE p AS SELECT 'x'",
            "EXECUTE p('x')",
            "EXPLAIN ANALYZE EXECUTE p('x')",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'ALTER /* ''x */ USER a PASSWORD ''x'''",
            "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN EXECUTE 'ALTER '||'USER a'; END$$",
            "SELECT dblink('host=x password=y', 'select 1')",
            "SELECT dblink_connect($1)",
            "SELECT public.crypt('x', gen_salt('bf'))",
            "SELECT \"crypt\"($1, v) FROM t",
            "SELECT set_config('my.x', 'y', false)",
            "SELECT set_config($1, $2, false)",
            "SET my.x = y",
            "SET LOCAL \"my.x\" TO 'y'",
            "SHOW my.x",
            "COPY t FROM PROGRAM 'curl -u a:b c'",
            "ALTR USER a PASSWORD 'x'",
            "ALTER USR a PASSWRD x",
            "SELECT set_password('ada', 'x')",
            "INSERT INTO t VALUES ('postgres://a:b@c/d')",
            "INSERT INTO t VALUES ('SCRAM-SHA-256$4096:x')",
            "SELECT * FROM pg_user_mappings",
        ] {
            assert!(may_hold(&tokens(sql)), "{sql}");
        }
    }

    #[test]
    fn ordinary_statements_are_left_alone() {
        for sql in [
            "",
            "UPDATE users SET password = 'x'",
            "INSERT INTO user_passwords (a, password) VALUES (1, 'x')",
            "SELECT create_user, alter_role FROM t WHERE a = 'x'",
            "CREATE TABLE t (id int, password text DEFAULT 'x', \"user\" text)",
            "CREATE OR REPLACE FUNCTION f(a text) RETURNS text LANGUAGE sql AS 'SELECT crypt(a, gen_salt(''bf''))'",
            "CREATE TRIGGER t BEFORE UPDATE ON u FOR EACH ROW EXECUTE FUNCTION f('x')",
            "SELECT set_config('search_path', 'a', false)",
            "SET default_transaction_isolation = 'serializable'",
            "SET SESSION AUTHORIZATION ada",
            "INSERT INTO t VALUES ('Do not create another user; see http://a/b:c')",
            "PREPARE TRANSACTION 'x'",
            "ALTER TABLE t ADD COLUMN c text DEFAULT 'x'",
            "COPY t FROM STDIN WITH (FORMAT csv)",
        ] {
            assert!(!may_hold(&tokens(sql)), "{sql}");
        }
    }

    #[test]
    fn values_with_passwords_are_found() {
        for text in [
            "host=a PassWord = b",
            "{user=a,password=b}",
            "https://a:b@c",
            "md50123456789abcdef0123456789abcdef",
            "ALTER USER a PASSWORD 'b'",
        ] {
            assert!(value_may_hold(text), "{text}");
        }
        for text in ["", "md5", "a password", "mailto:a@b", "http://a/b?c=d@e", "{\"password\": \"x\"}"] {
            assert!(!value_may_hold(text), "{text}");
        }
    }
}
