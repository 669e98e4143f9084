//! A statement in its normal form: its text with places for values, and what each value is compared
//! with or assigned to.
//!
//! Literals of simple queries count as values, as parameters do. Places that a parameter can't take
//! (`LIMIT 21`, `ORDER BY 1`, `numeric(12,2)`, `INTERVAL '1 day'`) are text.

use isobench_capture::Datum;

use isobench_script::lexer::{Kind, Token, words};
use isobench_sql::normal::MODIFIED;

/// What a statement is, as far as scripts are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Begins a block.
    Begin,
    /// Ends a block, and commits.
    Commit,
    /// Ends a block, and rolls back.
    Rollback,
    /// `SAVEPOINT`, `RELEASE` or `ROLLBACK TO`: the words before the name, and the name.
    Savepoint(&'static str, String),
    /// Sets something; it is no part of the workload.
    Setting,
    /// Reads the catalogs only.
    Catalog,
    /// Changes the schema.
    Schema,
    /// Something else that no script does: `COPY`, `LISTEN`, `PREPARE`.
    Other(String),
    /// Part of the workload.
    Work,
}

const CATALOG: [&str; 8] = [
    "pg_catalog",
    "information_schema",
    "pg_class",
    "pg_type",
    "pg_namespace",
    "pg_attribute",
    "pg_settings",
    "pg_stat_activity",
];

/// Functions that alone are a question about the server or the session.
const SESSION: [&str; 6] =
    ["version", "current_schema", "current_database", "set_config", "current_setting", "pg_backend_pid"];

/// Objects that concern more than the tables of one database: no script makes or changes them.
const WIDER: [&str; 8] = ["ROLE", "USER", "GROUP", "SUBSCRIPTION", "SERVER", "SYSTEM", "DATABASE", "FOREIGN"];

impl Role {
    /// The role of a statement.
    pub fn of(statement: &str) -> Role {
        let tokens = words(statement);
        let word =
            |place: usize| tokens.get(place).map_or(String::new(), |token| token.text.to_ascii_uppercase());
        let name = |place: usize| tokens.get(place).and_then(Token::name).unwrap_or_default();
        let (first, second) = (word(0), word(1));
        match first.as_str() {
            "COMMIT" | "ROLLBACK" | "PREPARE"
                if second == "PREPARED" || second == "TRANSACTION" && first == "PREPARE" =>
            {
                Role::Other("two-phase commit".to_owned())
            }
            "BEGIN" => Role::Begin,
            "START" if second == "TRANSACTION" => Role::Begin,
            "COMMIT" | "END" => Role::Commit,
            "SAVEPOINT" => Role::Savepoint("SAVEPOINT", name(1)),
            "RELEASE" => {
                Role::Savepoint("RELEASE SAVEPOINT", name(if second == "SAVEPOINT" { 2 } else { 1 }))
            }
            "ROLLBACK" | "ABORT" => match tokens.iter().position(|token| token.is("TO")) {
                Some(to) => {
                    let at = if word(to + 1) == "SAVEPOINT" { to + 2 } else { to + 1 };
                    Role::Savepoint("ROLLBACK TO SAVEPOINT", name(at))
                }
                None => Role::Rollback,
            },
            "CREATE" | "ALTER" | "DROP" if WIDER.contains(&second.as_str()) => {
                Role::Other(format!("{first} {second}"))
            }
            "SET" | "RESET" | "SHOW" | "DISCARD" | "DEALLOCATE" => Role::Setting,
            "CREATE" | "ALTER" | "DROP" | "COMMENT" | "GRANT" | "REVOKE" | "TRUNCATE" | "REINDEX"
            | "ANALYZE" | "VACUUM" => Role::Schema,
            "SELECT" | "WITH" | "VALUES" | "TABLE" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "LOCK"
            | "CALL" => {
                let asks = first == "SELECT" && !tokens.iter().any(|token| token.is("FROM"));
                let of_session = asks && tokens.iter().any(|token| token.is_any(&SESSION));
                let of_catalog =
                    tokens.iter().filter_map(Token::name).any(|name| CATALOG.contains(&name.as_str()));
                match (of_session, of_catalog) {
                    (true, _) => Role::Setting,
                    (_, true) => Role::Catalog,
                    _ => Role::Work,
                }
            }
            _ => Role::Other(first),
        }
    }
}

/// True for a statement that calls nothing but functions about the session.
pub fn asks_session_only(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).all(|pair| {
        let called = pair[1].is("(") && matches!(pair[0].kind, Kind::Word | Kind::Name);
        !called || pair[0].is_any(&SESSION) || pair[0].is_any(&["SELECT", "AS", "coalesce", "nullif", "trim"])
    })
}

/// What a value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    /// It becomes a column of an existing row.
    Set,
    /// It becomes a column of a new row.
    Insert,
    /// It is compared, or something else.
    Other,
}

/// A place for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The value; `None` is NULL.
    pub value: Option<Datum>,
    /// SQL that has this value, if it was a literal.
    pub literal: Option<String>,
    /// The column that it is compared with or assigned to, and its table, as far as the text shows it.
    pub column: Option<(Option<String>, String)>,
    /// What it is for.
    pub clause: Clause,
}

/// A statement in its normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normal {
    /// Equal for statements that differ in their values, and in how long their `IN` lists are.
    pub key: String,
    /// The texts between values: one more than values.
    pub texts: Vec<String>,
    /// The values.
    pub places: Vec<Place>,
    /// The first word, in lower case.
    pub verb: String,
    /// The table that it writes, or the first one that it reads.
    pub table: Option<String>,
}

/// Words and operators after which a literal may be a parameter.
const BEFORE_VALUE: [&str; 20] = [
    "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||", "(", ",", "LIKE", "ILIKE", "AND",
    "THEN", "ELSE",
];

impl Normal {
    /// Normalises a statement with these parameters.
    pub fn of(statement: &str, parameters: &[Option<Datum>]) -> Normal {
        let tokens = words(statement);
        let mut scan = Scan::new(&tokens);
        let mut texts = vec![String::new()];
        let mut places: Vec<Place> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at];
            let (value, length) = scan.value(at, parameters);
            if let Some((value, literal)) = value {
                let (column, clause) = (scan.column(at), scan.clause());
                if spaced(&tokens, at, true) {
                    last(&mut texts).push(' ');
                }
                places.push(Place { value, literal, column, clause });
                texts.push(String::new());
            } else {
                if spaced(&tokens, at, false) {
                    last(&mut texts).push(' ');
                }
                last(&mut texts).push_str(token.text);
            }
            for passed in at..at + length {
                scan.pass(passed);
            }
            at += length;
        }
        let verb = tokens.first().map_or(String::new(), |token| token.text.to_ascii_lowercase());
        Normal { key: key(&texts), texts, places, table: scan.table.clone(), verb }
    }
}

fn last(texts: &mut [String]) -> &mut String {
    let end = texts.len() - 1;
    &mut texts[end]
}

/// True if a blank belongs before a token, which may begin a value.
fn spaced(tokens: &[Token<'_>], at: usize, value: bool) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| tokens[before]) else { return false };
    let token = tokens[at];
    let close = [")", ",", ".", "::", "]", "[", ";"];
    let open = ["(", ".", "::", "["];
    let into = at >= 2 && tokens[at - 2].is("INTO");
    let called = token.text == "("
        && matches!(before.kind, Kind::Word | Kind::Name)
        && !before.is_any(&KEYWORDS)
        && !into;
    let tight = close.contains(&token.text) || open.contains(&before.text) || called;
    // Operators of several characters are several tokens.
    let operator = |token: Token<'_>| token.kind == Kind::Other && !"(),.;[]".contains(token.text);
    let joined = !value && operator(before) && operator(token) && adjacent(before, token);
    !tight && !joined
}

/// True if a token follows another one without a blank in the text.
fn adjacent(before: Token<'_>, token: Token<'_>) -> bool {
    std::ptr::eq(before.text.as_bytes().as_ptr_range().end, token.text.as_ptr())
}

/// Words that take a blank before a parenthesis.
const KEYWORDS: [&str; 14] = [
    "IN", "VALUES", "AND", "OR", "NOT", "EXISTS", "FROM", "WHERE", "SELECT", "ON", "AS", "SET", "UNION",
    "ALL",
];

/// The key of a text: lists of values in parentheses after `IN` are one, whatever their length.
fn key(texts: &[String]) -> String {
    let mut key = String::new();
    for (number, text) in texts.iter().enumerate() {
        let in_list = text == ", " && list_begun(&key);
        if in_list {
            continue;
        }
        if number > 0 {
            key.push('?');
        }
        key.push_str(text);
    }
    key
}

/// True if a key ends with the beginning of a list of which the first value is open.
fn list_begun(key: &str) -> bool {
    let before = key.strip_suffix('(');
    before.is_some_and(|before| before.trim_end().to_ascii_uppercase().ends_with(" IN"))
}

/// What is known of a statement up to a token.
struct Scan<'a> {
    tokens: &'a [Token<'a>],
    verb: &'a str,
    clause: String,
    /// For each open parenthesis, whether it holds the modifier of a type.
    open: Vec<bool>,
    table: Option<String>,
    /// The columns of an INSERT.
    columns: Vec<String>,
    /// The place in the row of an INSERT.
    column: usize,
}

impl<'a> Scan<'a> {
    fn new(tokens: &'a [Token<'a>]) -> Scan<'a> {
        let verb = tokens.first().map_or("", |token| token.text);
        let into =
            tokens.iter().position(|token| token.is("INTO")).filter(|_| verb.eq_ignore_ascii_case("INSERT"));
        let list = into
            .and_then(|into| tokens[into..].iter().position(|token| token.is("(")).map(|open| into + open));
        let columns = list.map_or(Vec::new(), |list| {
            let close = tokens[list..]
                .iter()
                .position(|token| token.is(")"))
                .map_or(tokens.len(), |close| list + close);
            tokens[list..close].iter().filter_map(Token::name).collect()
        });
        let mut scan =
            Scan { tokens, verb, clause: String::new(), open: Vec::new(), table: None, columns, column: 0 };
        let before = ["INTO", "UPDATE", "FROM"];
        let at = tokens.iter().position(|token| token.is_any(&before)).map(|at| at + 1);
        scan.table = at.and_then(|at| {
            scan.name_ending(if tokens.get(at).is_some_and(|token| token.is("ONLY")) { at + 1 } else { at })
        });
        scan
    }

    /// The last part of a name with dots that begins here.
    fn name_ending(&self, mut at: usize) -> Option<String> {
        while self.tokens.get(at + 1).is_some_and(|token| token.is(".")) {
            at += 2;
        }
        self.tokens.get(at)?.name()
    }

    /// Goes past a token.
    fn pass(&mut self, at: usize) {
        let token = self.tokens[at];
        match token.text {
            "(" => {
                let of_type = at.checked_sub(1).is_some_and(|before| self.tokens[before].is_any(&MODIFIED));
                self.open.push(of_type);
                if self.open.len() == 1 {
                    self.column = 0;
                }
            }
            ")" => drop(self.open.pop()),
            "," if self.open.len() == 1 => self.column += 1,
            _ => {}
        }
        let clauses = [
            "SET",
            "WHERE",
            "VALUES",
            "BY",
            "LIMIT",
            "OFFSET",
            "RETURNING",
            "HAVING",
            "ON",
            "FROM",
            "FOR",
            "FETCH",
            "SELECT",
        ];
        if token.is_any(&clauses) {
            self.clause = token.text.to_ascii_uppercase();
        }
    }

    fn clause(&self) -> Clause {
        match self.clause.as_str() {
            "SET" => Clause::Set,
            "VALUES" if self.verb.eq_ignore_ascii_case("INSERT") => Clause::Insert,
            _ => Clause::Other,
        }
    }

    /// The value of a token with its literal, if it is a place for one, and the number of its tokens.
    #[expect(clippy::type_complexity, reason = "the parts of a place")]
    fn value(
        &self,
        at: usize,
        parameters: &[Option<Datum>],
    ) -> (Option<(Option<Datum>, Option<String>)>, usize) {
        let token = self.tokens[at];
        if token.kind == Kind::Parameter {
            let number = token.text[1..].parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            return match number.and_then(|number| parameters.get(number)) {
                Some(value) => (Some((value.clone(), None)), 1),
                None => (None, 1),
            };
        }
        let Some(before) = at.checked_sub(1).map(|before| self.tokens[before]) else { return (None, 1) };
        // An argument of a function is a value in a list of output columns, too.
        let fixed = match self.clause.as_str() {
            "BY" | "LIMIT" | "OFFSET" | "FETCH" | "FOR" => true,
            "SELECT" | "RETURNING" => self.open.is_empty(),
            _ => false,
        };
        if fixed || self.open.last() == Some(&true) || !before.is_any(&BEFORE_VALUE) {
            return (None, 1);
        }
        let literal = |text: &str| Some(text.to_owned());
        let value = |value: String| Some(Datum::Text(value));
        match token.kind {
            Kind::Number => (Some((value(token.text.to_owned()), literal(token.text))), 1),
            Kind::Text => match token.value() {
                Some(text) => (Some((value(text), literal(token.text))), 1),
                None => (None, 1),
            },
            Kind::Other if token.text == "-" && !before.is(")") => match self.tokens.get(at + 1) {
                Some(number) if number.kind == Kind::Number => {
                    let negative = format!("-{}", number.text);
                    (Some((value(negative.clone()), Some(negative))), 2)
                }
                _ => (None, 1),
            },
            Kind::Word if before.is_any(&["=", "(", ","]) => match token.text.to_ascii_lowercase().as_str() {
                "null" => (Some((None, literal(token.text))), 1),
                word @ ("true" | "false") => (Some((value(word[..1].to_owned()), literal(token.text))), 1),
                _ => (None, 1),
            },
            _ => (None, 1),
        }
    }

    /// The column of the value at a token.
    fn column(&self, at: usize) -> Option<(Option<String>, String)> {
        if self.clause() == Clause::Insert {
            return (self.open.len() == 1)
                .then(|| self.columns.get(self.column).cloned())
                .flatten()
                .map(|column| (self.table.clone(), column));
        }
        // The beginning of a list belongs to the column before IN.
        let mut before = at;
        while before > 0
            && self.tokens[before - 1].is(",")
            && matches!(self.tokens[before.checked_sub(2)?].kind, Kind::Number | Kind::Text | Kind::Parameter)
        {
            before -= 2;
        }
        let listed = before >= 2 && self.tokens[before - 1].is("(") && self.tokens[before - 2].is("IN");
        let operator = if listed { before - 2 } else { at.checked_sub(1)? };
        if !listed && !self.tokens[operator].is_any(&["=", "<", ">", "<=", ">=", "<>", "!="]) {
            return None;
        }
        // An expression follows: the value is a part of it.
        let follows = self.tokens.get(at + 1).is_some_and(|next| next.is_any(&["+", "-", "*", "/", "||"]));
        let column = operator.checked_sub(1)?;
        let name = self.tokens[column].name().filter(|_| !follows)?;
        let qualified = column >= 2 && self.tokens[column - 1].is(".");
        let table = if qualified { self.tokens[column - 2].name() } else { self.table.clone() };
        Some((table, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(text: &str) -> Normal {
        Normal::of(text, &[Some(Datum::Text("p".to_owned()))])
    }

    fn columns(text: &str) -> Vec<String> {
        let name = |place: &Place| match &place.column {
            Some((table, column)) => format!("{}.{column}", table.as_deref().unwrap_or("?")),
            None => "-".to_owned(),
        };
        normal(text).places.iter().map(name).collect()
    }

    #[test]
    fn literals_are_values_where_a_parameter_could_stand() {
        assert_eq!(
            normal("SELECT a, 1 FROM t WHERE b = 'x''y' AND c>=-5 ORDER BY 1, 2 LIMIT 21").key,
            "SELECT a, 1 FROM t WHERE b = ? AND c >= ? ORDER BY 1, 2 LIMIT 21"
        );
        assert_eq!(
            normal(
                "UPDATE t SET n = NULL, m = 5::numeric(12,2), at = now() - INTERVAL '1 day' WHERE id = $1"
            )
            .key,
            "UPDATE t SET n = ?, m = ?::numeric(12, 2), at = now() - INTERVAL '1 day' WHERE id = ?"
        );
    }

    #[test]
    fn lists_of_any_length_are_one() {
        let key = normal("SELECT a FROM t WHERE b IN (1, 2, 3) AND c = 1").key;
        assert_eq!(key, "SELECT a FROM t WHERE b IN (?) AND c = ?");
        assert_eq!(key, normal("SELECT a FROM t WHERE b IN (7)  AND c = 1 /* x */").key);
        assert_ne!(normal("SELECT f(1, 2)  FROM t").key, normal("SELECT f(1) FROM t").key);
    }

    #[test]
    fn values_have_columns() {
        assert_eq!(
            columns("INSERT INTO \"s\".\"t\" (\"a\", b) VALUES ('x', 5) RETURNING id"),
            ["t.a", "t.b"]
        );
        assert_eq!(
            columns("UPDATE t SET a = 1, b = b + 2 WHERE t.id = 3 AND k IN (4, 5)"),
            ["t.a", "-", "t.id", "t.k", "t.k"]
        );
        assert_eq!(columns("SELECT 1 AS a FROM x WHERE \"x\".\"y\" = 'z' LIMIT 1"), ["x.y"]);
    }

    #[test]
    fn roles_are_told_by_the_first_words() {
        assert_eq!(Role::of("begin isolation level serializable"), Role::Begin);
        assert_eq!(
            Role::of("ROLLBACK TO SAVEPOINT \"s1\""),
            Role::Savepoint("ROLLBACK TO SAVEPOINT", "s1".to_owned())
        );
        assert_eq!(Role::of("SELECT set_config('TimeZone', 'UTC', false)"), Role::Setting);
        assert_eq!(Role::of("SELECT c.relname FROM pg_catalog.pg_class c"), Role::Catalog);
        assert_eq!(Role::of("create table t (v int)"), Role::Schema);
        for of_server in ["ALTER USER ***", "create role ***", "DROP DATABASE d"] {
            assert!(matches!(Role::of(of_server), Role::Other(_)), "{of_server}");
        }
        assert_eq!(Role::of("COPY t FROM STDIN"), Role::Other("COPY".to_owned()));
        assert_eq!(Role::of("ROLLBACK PREPARED 'x'"), Role::Other("two-phase commit".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_has_a_normal_form(text in "((SELECT|WHERE|IN|VALUES|UPDATE|SET|INSERT INTO|a|\"b\"|'c'|E'\\\\n'|5|-|=|\\(|\\)|,|;|\\$1|\\$9|\\.| |é){1,3} ){0,12}") {
            let normal = normal(&text);
            prop_assert_eq!(normal.texts.len(), normal.places.len() + 1);
            let _ = Role::of(&text);
        }
    }
}
