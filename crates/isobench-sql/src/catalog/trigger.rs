//! Trigger functions that do no more than give columns of the row a value, such as the time of its last
//! change: of those it is known what they read and write.
//!
//! Understood is PL/pgSQL (manual, "Trigger Functions" and "Control Structures") of `NEW.column := …`, `IF`,
//! `RAISE`, `PERFORM`, `NULL` and `RETURN`, whose expressions have no query and call no function that may
//! read or write tables.

use std::collections::BTreeSet;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::Catalog;

/// What a trigger function does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RowBody {
    /// The columns of the row that it may give a value.
    pub assigned: BTreeSet<String>,
    /// The columns of the row that it reads.
    pub reads: BTreeSet<String>,
    /// It reads the whole row.
    pub reads_row: bool,
    returns: BTreeSet<String>,
}

/// Words with which SQL reads or writes tables in an expression or as a statement.
const QUERIES: [&str; 20] = [
    "select",
    "table",
    "values",
    "with",
    "insert",
    "update",
    "delete",
    "merge",
    "into",
    "execute",
    "call",
    "union",
    "intersect",
    "except",
    "where",
    "group",
    "having",
    "limit",
    "offset",
    "window",
];

/// Words before a parenthesis that call no function.
const KEYWORDS: [&str; 12] =
    ["and", "or", "not", "in", "row", "any", "all", "some", "array", "when", "then", "else"];

/// Functions in whose arguments `FROM` is only a word.
const WITH_FROM: [&str; 5] = ["extract", "trim", "substring", "overlay", "position"];

/// Types to which values may be cast.
const PLAIN_TYPES: [&str; 21] = [
    "bigint",
    "bool",
    "boolean",
    "date",
    "double",
    "float8",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "numeric",
    "smallint",
    "text",
    "timestamp",
    "timestamptz",
    "uuid",
    "varchar",
];

impl RowBody {
    /// Reads the source of a function. `None` if it may do more.
    pub(super) fn of(source: &str, catalog: &Catalog) -> Option<RowBody> {
        if catalog.operators.iter().any(|operator| source.contains(operator.as_str())) {
            return None;
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, source).tokenize().ok()?;
        let tokens: Vec<Token> =
            tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let mut reader = Reader { catalog, tokens: &tokens, place: 0, body: RowBody::default() };
        reader.word("begin")?;
        reader.statements()?;
        reader.word("end")?;
        let _ = reader.token(&Token::SemiColon);
        (reader.place == tokens.len()).then_some(reader.body)
    }

    /// True if each row is written that a statement inserts or updates.
    pub(super) fn writes_all(&self) -> bool {
        self.returns.iter().all(|row| row == "new")
    }

    /// True if each row is deleted that a statement deletes.
    pub(super) fn deletes_all(&self) -> bool {
        self.returns.iter().all(|row| row == "old")
    }
}

struct Reader<'a> {
    catalog: &'a Catalog,
    tokens: &'a [Token],
    place: usize,
    body: RowBody,
}

impl Reader<'_> {
    /// True if the next word is a type of the system's own, of which no cast is a user's.
    fn is_plain_type(&self) -> bool {
        let plain = |word: String| PLAIN_TYPES.contains(&word.as_str());
        let qualified = self.tokens.get(self.place + 1) == Some(&Token::Period);
        !qualified && self.word_at(self.place).is_some_and(plain)
    }

    /// The unquoted word at a place, in lower case.
    fn word_at(&self, place: usize) -> Option<String> {
        match self.tokens.get(place)? {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    fn name_at(&self, place: usize) -> Option<String> {
        match self.tokens.get(place)? {
            Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
            _ => self.word_at(place),
        }
    }

    fn word(&mut self, wanted: &str) -> Option<()> {
        (self.word_at(self.place)? == wanted).then(|| self.place += 1)
    }

    fn token(&mut self, wanted: &Token) -> Option<()> {
        (self.tokens.get(self.place)? == wanted).then(|| self.place += 1)
    }

    /// Statements up to a word that ends them.
    fn statements(&mut self) -> Option<()> {
        loop {
            let first = self.word_at(self.place)?;
            match first.as_str() {
                "end" | "elsif" | "elseif" | "else" => return Some(()),
                _ => self.place += 1,
            }
            match first.as_str() {
                "null" => self.token(&Token::SemiColon)?,
                "return" => {
                    let row = self.word_at(self.place)?;
                    self.place += 1;
                    self.token(&Token::SemiColon)?;
                    matches!(row.as_str(), "new" | "old" | "null").then(|| self.body.returns.insert(row))?;
                }
                "raise" | "perform" => self.expression(";")?,
                "if" => self.condition()?,
                "new" => {
                    self.token(&Token::Period)?;
                    let column = self.name_at(self.place)?;
                    self.place += 1;
                    self.token(&Token::Assignment).or_else(|| self.token(&Token::Eq))?;
                    self.body.assigned.insert(column);
                    self.expression(";")?;
                }
                _ => return None,
            }
        }
    }

    /// What follows `IF`.
    fn condition(&mut self) -> Option<()> {
        self.expression("then")?;
        self.statements()?;
        let next = self.word_at(self.place)?;
        self.place += 1;
        match next.as_str() {
            "elsif" | "elseif" => return self.condition(),
            "else" => {
                self.statements()?;
                self.word("end")?;
            }
            _ => {}
        }
        self.word("if")?;
        self.token(&Token::SemiColon)
    }

    /// An expression, with the word or sign that ends it.
    fn expression(&mut self, end: &str) -> Option<()> {
        let (mut cases, mut calls) = (0_usize, Vec::new());
        loop {
            let place = self.place;
            let token = self.tokens.get(place)?;
            self.place += 1;
            let word = self.word_at(place);
            let word = word.as_deref();
            match token {
                Token::SemiColon => return (end == ";" && calls.is_empty()).then_some(()),
                Token::LParen => calls.push(place.checked_sub(1).and_then(|before| self.name_at(before))),
                Token::RParen => {
                    drop(calls.pop()?);
                    // A field of a value, or a function of it.
                    if self.tokens.get(self.place) == Some(&Token::Period) {
                        return None;
                    }
                }
                // A cast may call a function of a user.
                Token::DoubleColon if !self.is_plain_type() => return None,
                _ => {}
            }
            let Some(name) = self.name_at(place) else { continue };
            match word {
                Some("then") if cases == 0 => return (end == "then" && calls.is_empty()).then_some(()),
                Some("case") => cases += 1,
                Some("end") => cases = cases.checked_sub(1)?,
                Some("from") => {
                    let distinct = self.word_at(place.checked_sub(1)?).is_some_and(|word| word == "distinct");
                    let within = calls.last().and_then(Option::as_deref);
                    if !distinct && !within.is_some_and(|call| WITH_FROM.contains(&call)) {
                        return None;
                    }
                }
                Some(word) if QUERIES.contains(&word) => return None,
                _ => {}
            }
            if matches!(word, Some("new" | "old")) {
                match (self.tokens.get(place + 1), self.name_at(place + 2)) {
                    (Some(Token::Period), Some(column)) => drop(self.body.reads.insert(column)),
                    _ => self.body.reads_row = true,
                }
            }
            let called = self.tokens.get(place + 1) == Some(&Token::LParen)
                && !word.is_some_and(|word| KEYWORDS.contains(&word));
            let facts = self.catalog.function(&name);
            let looks = self.catalog.hidden.is_looking(&name);
            if called && (facts.writes || facts.reads || looks || name == "nextval") {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{FunctionFacts, Hidden};

    fn body(source: &str) -> Option<RowBody> {
        let mut catalog = Catalog::default();
        catalog.operators.insert("###".to_owned());
        catalog.hidden = Hidden::looking(&["pg_relation_size"]);
        catalog.functions.insert("own".to_owned(), FunctionFacts { reads: true, ..FunctionFacts::default() });
        RowBody::of(source, &catalog)
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_only_touches_the_row_is_understood() {
        let touch = body("BEGIN -- the time\n NEW.updated_at = now();\n RETURN NEW;\nEND;").unwrap();
        assert_eq!((touch.assigned.clone(), touch.reads.clone()), (names(&["updated_at"]), names(&[])));
        assert!(touch.writes_all() && !touch.reads_row);
        let version = body(
            "begin\n if new is distinct from old then\n  new.\"Version\" := coalesce(old.\"Version\", 0) + 1;\n \
             elsif extract(epoch from new.at) > 0 then null; else raise exception 'no: %', new.id; end if;\n \
             return new;\nend",
        )
        .unwrap();
        assert_eq!(version.assigned, names(&["Version"]));
        assert_eq!(version.reads, names(&["Version", "at", "id"]));
        assert!(version.reads_row);
        let case = "BEGIN NEW.kind := CASE WHEN NEW.a > 1 THEN 'x' ELSE 'y' END; RETURN NEW; END";
        assert_eq!(body(case).unwrap().assigned, names(&["kind"]));
        let notified =
            body("BEGIN PERFORM pg_notify('c', row_to_json(NEW)::text); RETURN NULL; END;").unwrap();
        assert!(notified.reads_row && !notified.writes_all());
        assert!(body("BEGIN RETURN OLD; END;").unwrap().deletes_all());
    }

    #[test]
    fn what_may_do_more_is_not() {
        for source in [
            "BEGIN UPDATE t SET v = 1; RETURN NEW; END",
            "BEGIN NEW.n := count(*) FROM t; RETURN NEW; END",
            "BEGIN NEW.n := (SELECT 1); RETURN NEW; END",
            "BEGIN NEW.n := own(1); RETURN NEW; END",
            "BEGIN NEW.n := (NEW.c).f; RETURN NEW; END",
            "BEGIN NEW.n := NEW.c::cents; RETURN NEW; END",
            "BEGIN NEW.n := NEW.c::other.int; RETURN NEW; END",
            "BEGIN NEW.n := NEW.c ### 1; RETURN NEW; END",
            "BEGIN NEW.n := nextval('s'); RETURN NEW; END",
            "BEGIN NEW.n := pg_relation_size('t'); RETURN NEW; END",
            "BEGIN PERFORM 1 FROM t WHERE id = NEW.id; RETURN NEW; END",
            "BEGIN EXECUTE 'x'; RETURN NEW; END",
            "DECLARE n int; BEGIN RETURN NEW; END",
            "BEGIN NEW := OLD; RETURN NEW; END",
            "BEGIN IF NEW.a THEN RETURN NEW; END",
            "BEGIN NEW.a := 1 THEN; RETURN NEW; END",
            "BEGIN RETURN NEW; END; DROP",
            "BEGIN RETURN COALESCE(NEW, OLD); END",
            "BEGIN NEW.a := (1; RETURN NEW; END",
            "",
        ] {
            assert_eq!(body(source), None, "{source}");
        }
    }
}
