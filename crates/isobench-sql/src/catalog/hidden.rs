//! Code that isn't analysed, by its words: functions, views, rules, triggers, policies, defaults and conditions.
//!
//! A statement that reaches such code may read and write anything, and serializable protects that. It doesn't protect
//! data outside of snapshots: TRUNCATE, locks that are only tried, sequences, catalogs, sizes (PostgreSQL manual,
//! "Caveats" of MVCC). Nor does it where a conflict is caught, or where a unique index or a foreign key looks at the
//! newest rows. So the words of all code that a statement reaches by names decide whether it may do any of these.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::{Relation, RelationKind};

/// The texts of code by the names by which it is reached, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Of functions, types and relations.
    pub(super) named: BTreeMap<String, Vec<String>>,
    /// Of operators.
    pub(super) operators: BTreeMap<String, Vec<String>>,
    /// Of casts, and of what stands in for the system's own, which need no name.
    pub(super) always: Vec<String>,
    /// Functions whose code can't be read: of other languages.
    pub(super) unreadable: BTreeSet<String>,
    /// The system's functions that may look at more than values and rows.
    pub(super) looking: BTreeSet<String>,
    /// Relations whose rows no level guards, or that only the system has.
    pub(super) unguarded: BTreeSet<String>,
}

/// What a statement and the code behind it may do, by their words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Hides {
    /// It may do anything, also to data of others that no level guards.
    pub wild: bool,
    /// It may look at data that no level guards.
    pub looks: bool,
    /// It may insert rows.
    pub inserts: bool,
    /// It may delete rows.
    pub deletes: bool,
    /// It may change a row that is in the way of a new one.
    pub upserts: bool,
    /// The columns that it may give other values.
    pub assigned: BTreeSet<String>,
    /// It may give any column of a row another value: a trigger takes another row in its place.
    pub replaces: bool,
    /// All words.
    pub words: BTreeSet<String>,
}

/// Commands that change data of older snapshots, settings or catalogs, or end transactions.
const WILD: [&str; 15] = [
    "alter",
    "cluster",
    "commit",
    "create",
    "deallocate",
    "discard",
    "drop",
    "grant",
    "import",
    "refresh",
    "reindex",
    "reset",
    "revoke",
    "rollback",
    "truncate",
];

/// Words of data that no level guards.
const LOOKS: [&str; 6] = ["cmax", "cmin", "ctid", "information_schema", "skip", "xmax"];

/// Words after which a statement of a procedure begins.
const BEFORE_STATEMENT: [&str; 5] = ["begin", "else", "loop", "then", "do"];

impl Hidden {
    /// Notes a relation whose rows no level guards.
    pub(super) fn note(&mut self, relation: &Relation) {
        let unguarded = match relation.kind {
            RelationKind::System => relation.name.starts_with("pg_"),
            RelationKind::Materialized
            | RelationKind::Foreign
            | RelationKind::Stored
            | RelationKind::Other => true,
            RelationKind::Table | RelationKind::Partitioned | RelationKind::View => false,
        };
        if unguarded {
            self.unguarded.insert(relation.name.to_lowercase());
        }
    }

    /// True if a function, type or relation of users has this name.
    pub fn is_named(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.named.contains_key(&name) || self.unreadable.contains(&name)
    }

    /// True if a function of the system may look at more than values and rows.
    pub fn is_looking(&self, function: &str) -> bool {
        self.looking.contains(function)
    }

    /// Of nothing but such functions.
    #[cfg(test)]
    pub fn looking(functions: &[&str]) -> Hidden {
        let looking = functions.iter().map(|name| (*name).to_owned()).collect();
        Hidden { looking, ..Hidden::default() }
    }

    /// What a statement may do, with all code that it reaches.
    pub fn behind(&self, text: &str) -> Hides {
        let mut hides = Hides::default();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = self.always.iter().map(String::as_str).chain([text]).collect();
        while let Some(text) = open.pop() {
            if !seen.insert(text) {
                continue;
            }
            let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else {
                hides.wild = true;
                continue;
            };
            let mut words = BTreeSet::new();
            // What the commands of a script itself do is known.
            let own = seen.len() == 1;
            self.read(&tokens, own, &mut hides, &mut words);
            hides.looks |= !own && words.contains("set_config");
            let operators = self.operators.iter().filter(|(name, _)| text.contains(name.as_str()));
            open.extend(operators.flat_map(|(_, texts)| texts).map(String::as_str));
            for word in words {
                hides.wild |= self.unreadable.contains(&word);
                open.extend(self.named.get(&word).into_iter().flatten().map(String::as_str));
                hides.words.insert(word);
            }
        }
        if hides.wild {
            (hides.looks, hides.inserts, hides.deletes) = (true, true, true);
        }
        hides
    }

    /// Notes what the tokens of a text show, and its words.
    fn read(&self, tokens: &[Token], own: bool, hides: &mut Hides, words: &mut BTreeSet<String>) {
        let tokens: Vec<&Token> =
            tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let does = tokens.first().is_some_and(|token| lower(token).is_some_and(|word| word == "do"));
        let has_row = tokens.iter().any(|token| lower(token).is_some_and(|word| word == "new"));
        for (place, token) in tokens.iter().enumerate() {
            let inner = match token {
                Token::DollarQuotedString(body) => Some(&body.value),
                Token::SingleQuotedString(body) | Token::EscapedStringLiteral(body) if does => Some(body),
                _ => None,
            };
            if let Some(inner) = inner {
                match Tokenizer::new(&PostgreSqlDialect {}, inner).tokenize() {
                    Ok(inner) => self.read(&inner, false, hides, words),
                    Err(_) => hides.wild = true,
                }
            }
            let Some(word) = lower(token) else { continue };
            let at = |place: Option<usize>| place.and_then(|place| tokens.get(place)).copied();
            let (before, after) = (at(place.checked_sub(1)), at(Some(place + 1)));
            let word_before = before.and_then(lower).unwrap_or_default();
            let begins = matches!(before, None | Some(Token::SemiColon))
                || BEFORE_STATEMENT.contains(&word_before.as_str());
            // A column may have any of these names.
            let is_column = before == Some(&Token::Period);
            let called = after == Some(&Token::LParen);
            match word.as_str() {
                "exception" if word_before != "raise" => hides.looks = true,
                "set" | "lock" | "prepare" | "listen" if begins => hides.looks = true,
                "insert" | "copy" => {
                    hides.inserts = true;
                    hides.wild |= word == "copy" && !own && !is_column && !called;
                }
                "conflict" if word_before == "on" => {
                    let rest = tokens[place..].iter().take_while(|token| ***token != Token::SemiColon);
                    let rest: Vec<String> = rest.filter_map(|token| lower(token)).collect();
                    let updates = rest.iter().position(|word| word == "update");
                    hides.upserts |= updates.is_some();
                    // A row that its condition keeps is read as it is, which serializable doesn't watch.
                    hides.looks |= updates.is_some_and(|at| rest[at..].iter().any(|word| word == "where"));
                }
                "merge" => (hides.inserts, hides.deletes) = (true, true),
                "delete" => hides.deletes = true,
                // Of a prepared statement the text isn't here.
                "execute" if !is_column && !called => hides.wild = true,
                word if WILD.contains(&word) && !is_column && !called => hides.wild |= !own,
                word if LOOKS.contains(&word) => hides.looks = true,
                word if called && word != "set_config" && self.looking.contains(word) => {
                    hides.looks = true;
                }
                word => hides.looks |= !is_column && self.unguarded.contains(word),
            }
            if is_assigned(&tokens, place) {
                hides.assigned.insert(word.clone());
            }
            hides.replaces |= !own && is_replaced(&tokens, place) && has_row;
            words.insert(word);
        }
    }
}

/// True if the word at a place is a column that an UPDATE sets, or that gets a value as a field of a record.
fn is_assigned(tokens: &[&Token], place: usize) -> bool {
    let word = |back: usize| place.checked_sub(back).and_then(|place| tokens.get(place)).copied();
    let is = |back: usize, wanted: &str| word(back).and_then(lower).is_some_and(|word| word == wanted);
    let followed = |wanted: &[Token]| tokens.get(place + 1).is_some_and(|next| wanted.contains(next));
    let after_name = is(1, "set") || word(1) == Some(&Token::Comma);
    let in_list = after_name || word(1) == Some(&Token::LParen);
    let of_record = word(1) == Some(&Token::Period);
    let begins = place < 3 || begins_statement(tokens, place - 2);
    (after_name || of_record && begins) && followed(&[Token::Eq, Token::Assignment])
        || of_record && followed(&[Token::Assignment])
        || of_record && is_target(tokens, place - 2)
        || after_name && followed(&[Token::LBracket, Token::Period]) && is_in_set(tokens, place)
        || in_list && followed(&[Token::Comma, Token::RParen]) && list_is_set(tokens, place)
}

/// True if a place lies in what SET lists.
fn is_in_set(tokens: &[&Token], place: usize) -> bool {
    const CLAUSES: [&str; 6] = ["set", "from", "returning", "select", "values", "where"];
    let mut words = tokens[..place].iter().rev().take_while(|token| ***token != Token::SemiColon);
    let clause = words.find_map(|token| lower(token).filter(|word| CLAUSES.contains(&word.as_str())));
    clause.is_some_and(|word| word == "set")
}

/// True if the word at a place takes the place of a trigger's row: `NEW := …`, `INTO NEW`, `RETURN other`.
fn is_replaced(tokens: &[&Token], place: usize) -> bool {
    let next = tokens.get(place + 1).copied();
    match lower(tokens[place]).as_deref() {
        Some("new") => {
            let assigned =
                matches!(next, Some(Token::Assignment | Token::Eq)) && begins_statement(tokens, place);
            assigned || next != Some(&Token::Period) && is_target(tokens, place)
        }
        Some("return") => {
            let word = next.and_then(lower);
            let row = word.as_deref().is_none_or(|word| ["new", "old", "null"].contains(&word));
            let only = matches!(tokens.get(place + 2), None | Some(Token::SemiColon));
            next != Some(&Token::SemiColon) && !(row && only && word.is_some())
        }
        _ => false,
    }
}

/// True if a statement of a procedure begins at a place.
fn begins_statement(tokens: &[&Token], place: usize) -> bool {
    match place.checked_sub(1).map(|before| tokens[before]) {
        None | Some(Token::SemiColon) => true,
        Some(before) => lower(before).is_some_and(|word| BEFORE_STATEMENT.contains(&word.as_str())),
    }
}

/// True if the word at a place is among the targets of INTO.
fn is_target(tokens: &[&Token], place: usize) -> bool {
    let mut at = place;
    while let Some(before) = at.checked_sub(1) {
        match tokens[before] {
            Token::Comma | Token::Period => at = before.saturating_sub(1),
            token => {
                let word = lower(token);
                return word.as_deref() == Some("into")
                    || word.as_deref() == Some("strict") && is_target(tokens, before);
            }
        }
    }
    false
}

/// True if a place lies in the parentheses directly after SET.
fn list_is_set(tokens: &[&Token], place: usize) -> bool {
    let open = (0..place).rev().find(|at| *tokens[*at] == Token::LParen);
    let before = open.and_then(|open| open.checked_sub(1)).and_then(|at| lower(tokens[at]));
    before.is_some_and(|word| word == "set")
        || open.is_some_and(|open| open > 0 && *tokens[open - 1] == Token::Comma)
}

/// A word in lower case, in quotes or not.
fn lower(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(text: &str) -> Hides {
        let texts = |name: &str, text: &str| (name.to_owned(), vec![text.to_owned()]);
        let hidden = Hidden {
            named: BTreeMap::from([
                texts("empty", "BEGIN TRUNCATE queue; END"),
                texts("shown", "SELECT empty()"),
                texts(
                    "pay",
                    "BEGIN UPDATE acc SET v = v - 1, w = 2 WHERE id = 1; RAISE EXCEPTION 'truncate'; END",
                ),
                texts("try", "SELECT pg_try_advisory_xact_lock(1)"),
                texts("size", "SELECT pg_relation_size('t')"),
                texts("swallow", "BEGIN INSERT INTO t VALUES (1); EXCEPTION WHEN OTHERS THEN NULL; END"),
                texts("log", "BEGIN NEW.touched := now(); RETURN NEW; END"),
            ]),
            operators: BTreeMap::from([texts("###", "empty")]),
            unreadable: BTreeSet::from(["python".to_owned()]),
            looking: ["pg_relation_size", "pg_try_advisory_xact_lock"].map(str::to_owned).into(),
            ..Hidden::default()
        };
        hidden.behind(text)
    }

    #[test]
    fn words_of_reached_code_decide() {
        for wild in
            ["SELECT empty()", "SELECT * FROM shown", "SELECT 1 ### 2", "SELECT python()", "CALL \"empty\"()"]
        {
            assert!(behind(wild).wild, "{wild}");
        }
        for looks in [
            "SELECT try()",
            "SELECT size()",
            "CALL swallow()",
            "SELECT xmax FROM t",
            "DO $$ BEGIN PERFORM try(); END $$",
        ] {
            let hides = behind(looks);
            assert!(hides.looks && !hides.wild, "{looks}");
        }
        assert!(behind("COPY t FROM '/file'").inserts && !behind("COPY t FROM '/file'").wild);
        let harmless = behind("SELECT pay(), 'empty', \"log\" FROM t -- TRUNCATE");
        assert!(!harmless.looks && !harmless.wild && !harmless.inserts && !harmless.deletes);
        assert_eq!(harmless.assigned, ["touched", "v", "w"].map(str::to_owned).into());
    }

    #[test]
    fn assigned_columns_are_found() {
        let assigned = |text: &str| behind(text).assigned.into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(assigned("UPDATE t SET (a, b) = (1, c), d = e WHERE f = 1 AND g = 2"), "a b d");
        assert_eq!(assigned("INSERT INTO t (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = 3"), "b");
        assert_eq!(assigned("UPDATE t SET a[1] = 2, c.d = 3 WHERE t.e = 4"), "a c");
        let of_record = "DO $$ BEGIN r := NEW; r.a := 1; s.b = 2; SELECT 1, 2 INTO x, NEW.c; IF r.d = 1 THEN NULL; END IF; END $$";
        assert_eq!(assigned(of_record), "a b c");
    }

    #[test]
    fn triggers_that_take_another_row_are_found() {
        let replaces = |body: &str| {
            let hidden = Hidden {
                named: BTreeMap::from([("t".to_owned(), vec![body.to_owned()])]),
                ..Hidden::default()
            };
            hidden.behind("UPDATE t SET a = 1").replaces
        };
        for body in [
            "BEGIN r := NEW; NEW := r; RETURN NEW; END",
            "BEGIN SELECT * INTO NEW FROM other; RETURN NEW; END",
            "DECLARE r t; BEGIN r := NEW; RETURN r; END",
            "BEGIN RETURN populate_record(NEW, 'a=>1'); END",
        ] {
            assert!(replaces(body), "{body}");
        }
        for body in [
            "BEGIN NEW.a := 1; RETURN NEW; END",
            "BEGIN INSERT INTO log SELECT NEW.*; RETURN NULL; END",
            "BEGIN RETURN 1 + a; END",
            "BEGIN IF NEW.a = 1 THEN RETURN OLD; END IF; RETURN; END",
        ] {
            assert!(!replaces(body), "{body}");
        }
    }
}
