//! Classifies SQL statements by their leading keywords.

use super::lexer::{Kind, block_comment, tokens};
use super::statement::{Savepoint, Statement};

/// The kind of a statement; `None` if there are only blanks, comments and semicolons.
pub(crate) fn classify(text: &str) -> Option<Statement> {
    let mut words = Words { rest: text };
    let first = words.next()?;
    let is = |word: &str, wanted: &[&str]| wanted.iter().any(|keyword| keyword.eq_ignore_ascii_case(word));
    let mut second = || words.next().unwrap_or("");
    let kind = match first.to_ascii_lowercase().as_str() {
        "begin" => Statement::Begin,
        "start" if is(second(), &["transaction"]) => Statement::Begin,
        "set" if is(second(), &["transaction"]) => Statement::Modes,
        "end" => Statement::Commit,
        "commit" if !is(second(), &["prepared"]) => Statement::Commit,
        "prepare" if is(second(), &["transaction"]) => Statement::Commit,
        "rollback" | "abort" if !words.any(|word| is(word, &["to", "prepared"])) => Statement::Rollback,
        "release" => Statement::Release,
        "copy" if words.any(|word| is(word, &["stdin", "stdout"])) => Statement::Copy,
        _ => Statement::Other,
    };
    Some(kind)
}

/// True if a statement runs code that may commit by itself: `CALL`, `DO`.
pub(crate) fn may_commit_inside(text: &str) -> bool {
    let is_first =
        |word: &str| Words { rest: text }.next().is_some_and(|first| first.eq_ignore_ascii_case(word));
    keyword(text, &["call"]).is_some() || is_first("do")
}

/// The place in the text of a `BEGIN` or `START TRANSACTION` at which its modes stand.
pub(crate) fn modes_place(text: &str) -> usize {
    let mut words = Words { rest: text };
    words.next();
    let mut place = text.len() - words.rest.len();
    if words.next().is_some_and(|word| ["work", "transaction"].contains(&word.to_ascii_lowercase().as_str()))
    {
        place = text.len() - words.rest.len();
    }
    place
}

/// The place in a text of one or more statements at which the first ends, before its semicolon.
pub(crate) fn statement_end(text: &str) -> usize {
    let (mut place, mut end) = (0, 0);
    for token in tokens(text) {
        if token.is(";") {
            return end;
        }
        place += token.text.len();
        if !matches!(token.kind, Kind::Blank | Kind::Comment) {
            end = place;
        }
    }
    end
}

/// True if a statement sets the isolation level of its transaction or session, or resets the level
/// of the session.
///
/// Source: PostgreSQL manual, `SET TRANSACTION`, `BEGIN`, `set_config`, `DISCARD`. Strings that
/// other SQL executes aren't examined.
pub(crate) fn sets_level(text: &str) -> bool {
    level_set_at(text).is_some()
}

/// The place in the text of the words by which it sets or resets a level.
pub(crate) fn level_set_at(text: &str) -> Option<usize> {
    /// The settings for the level.
    const SETTINGS: [&str; 2] = ["transaction_isolation", "default_transaction_isolation"];
    let mut rest = Words { rest: text };
    let words = std::iter::from_fn(|| {
        let word = rest.next()?;
        let place = text.len() - rest.rest.len() - word.len();
        Some((place, word.trim_matches(['\'', '"', '$']).to_ascii_lowercase()))
    });
    let words: Vec<(usize, String)> = words.collect();
    let pair = |first: &str, second: &str| {
        let found = words.windows(2).find(|pair| pair[0].1 == first && pair[1].1 == second);
        found.map(|pair| pair[0].0)
    };
    let sets = words.iter().any(|(_, word)| matches!(word.as_str(), "set" | "reset" | "set_config"));
    let setting = || words.iter().find(|(_, word)| sets && SETTINGS.contains(&word.as_str()));
    pair("isolation", "level")
        .or_else(|| pair("reset", "all"))
        .or_else(|| pair("discard", "all"))
        .or_else(|| setting().map(|(place, _)| *place))
}

/// The first word of the text that is one of those wanted, in any case.
pub(crate) fn keyword<'a>(text: &str, wanted: &[&'a str]) -> Option<&'a str> {
    let among = |word: &str| wanted.iter().copied().find(|wanted| wanted.eq_ignore_ascii_case(word));
    Words { rest: text }.find_map(among)
}

/// The effect of a statement on a savepoint, by its leading words; `None` if the name isn't written
/// out.
pub(crate) fn savepoint(text: &str) -> Option<Savepoint> {
    let mut words = Words { rest: text };
    let first = words.next()?.to_ascii_lowercase();
    let build = match first.as_str() {
        "savepoint" => Savepoint::Set,
        "release" => Savepoint::Release,
        _ => return None,
    };
    let mut name = words.next()?;
    if first == "release" && name.eq_ignore_ascii_case("savepoint") {
        name = words.next()?;
    }
    match name.chars().next()? {
        '"' if name.len() > 2 && name.ends_with('"') && !words.rest.starts_with('"') => {
            Some(build(name.to_owned()))
        }
        first if first.is_alphabetic() || first == '_' => Some(build(name.to_ascii_lowercase())),
        _ => None,
    }
}

/// The words and symbols of an SQL text outside comments; a quoted text is one symbol.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            self.rest =
                self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b' || c == ';');
            if let Some(comment) = self.rest.strip_prefix("--") {
                self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
            } else if self.rest.starts_with("/*") {
                self.rest = &self.rest[block_comment(self.rest.as_bytes()).0..];
            } else {
                break;
            }
        }
        let first = self.rest.chars().next()?;
        let end = if first == '\'' || first == '"' {
            self.rest[1..].find(first).map_or(self.rest.len(), |end| end + 2)
        } else {
            let word =
                self.rest.find(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '$');
            match word {
                Some(0) => first.len_utf8(),
                Some(end) => end,
                None => self.rest.len(),
            }
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savepoints_have_names() {
        let set = |name: &str| Some(Savepoint::Set(name.to_owned()));
        let release = |name: &str| Some(Savepoint::Release(name.to_owned()));
        for (text, told) in [
            ("SAVEPOINT cockroach_restart;", set("cockroach_restart")),
            ("/* a */ savepoint -- b\n S1", set("s1")),
            ("SAVEPOINT \"A b\"", set("\"A b\"")),
            ("RELEASE SAVEPOINT s", release("s")),
            ("release S;", release("s")),
            ("RELEASE \"savepoint\"", release("\"savepoint\"")),
            ("SAVEPOINT :name", None),
            ("SAVEPOINT \"a\"\"b\"", None),
            ("SAVEPOINT 'a'", None),
            ("SAVEPOINT", None),
            ("RELEASE SAVEPOINT", None),
            ("ROLLBACK TO SAVEPOINT s", None),
            ("", None),
        ] {
            assert_eq!(savepoint(text), told, "{text}");
        }
    }

    #[test]
    fn statements_that_set_a_level() {
        for text in [
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "begin transaction read only, isolation /* x */ level repeatable read",
            "START TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET default_transaction_isolation = 'serializable'",
            "set local transaction_isolation to serializable",
            "RESET default_transaction_isolation",
            "SELECT set_config('default_transaction_isolation', 'serializable', false)",
            "SELECT 1; DISCARD ALL",
            "reset all",
            "DO $$BEGIN SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; END$$",
        ] {
            assert!(sets_level(text), "{text}");
        }
        for text in [
            "BEGIN",
            "BEGIN READ ONLY",
            "SHOW transaction_isolation",
            "SELECT current_setting('transaction_isolation')",
            "INSERT INTO notes VALUES ('isolation level serializable')",
            "-- isolation level serializable\nSELECT isolation, level FROM t",
            "UPDATE t SET v = 1",
            "DISCARD TEMP",
        ] {
            assert!(!sets_level(text), "{text}");
        }
    }

    #[test]
    fn keywords_are_found_outside_of_quotations() {
        let wanted = ["update", "insert"];
        for (text, found) in [
            ("select * from t for UPDATE;", Some("update")),
            ("with u as (insert into t values (1)) select 1", Some("insert")),
            ("select 'update', \"insert\", updates -- update", None),
            ("", None),
        ] {
            assert_eq!(keyword(text, &wanted), found, "{text}");
        }
    }

    #[test]
    fn leading_keywords_decide() {
        for (text, kind) in [
            ("BEGIN;", Statement::Begin),
            ("/* a /* b */ */ -- c\n begin isolation level serializable;", Statement::Begin),
            ("Start  Transaction", Statement::Begin),
            ("start", Statement::Other),
            ("END;", Statement::Commit),
            ("commit work", Statement::Commit),
            ("commit prepared 'x'", Statement::Other),
            ("prepare transaction 'x'", Statement::Commit),
            ("prepare p as select 1", Statement::Other),
            ("ROLLBACK", Statement::Rollback),
            ("abort;", Statement::Rollback),
            ("rollback to s", Statement::Other),
            ("rollback work to savepoint s", Statement::Other),
            ("rollback prepared 'x'", Statement::Other),
            ("release savepoint s", Statement::Release),
            ("copy t from stdin", Statement::Copy),
            ("copy (select 1) to stdout", Statement::Copy),
            ("copy t from 'stdin'", Statement::Other),
            ("beginning", Statement::Other),
            ("select 1", Statement::Other),
            ("'begin'", Statement::Other),
            ("é", Statement::Other),
            ("SET TRANSACTION READ ONLY", Statement::Modes),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Statement::Other),
        ] {
            assert_eq!(classify(text), Some(kind), "{text}");
        }
        for text in ["", " ; ", "-- x", "/* begin", "/* */ ;"] {
            assert_eq!(classify(text), None, "{text}");
        }
    }
}
