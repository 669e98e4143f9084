//! SET, RESET and `set_config`: what they change of names and of printed values.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use isobench_sql::Catalog;
use isobench_sql::{Placed, Text, word};

/// What a setting changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// How values of some types are printed, other than those that are compared.
    Printed,
    /// What names mean, how any value is printed, or which triggers fire: by these words.
    Names(String),
}

/// Settings by which values of further types are printed in another way.
const PRINTED: [&str; 6] =
    ["bytea_output", "extra_float_digits", "intervalstyle", "lc_monetary", "lc_numeric", "timezone"];

/// Settings that are only harmless with one value, in any case.
const FIXED: [(&str, &[&str]); 5] = [
    ("client_encoding", &["utf8", "utf-8", "unicode"]),
    ("row_security", &["on", "true", "1"]),
    ("session_replication_role", &["origin"]),
    ("standard_conforming_strings", &["on", "true", "1"]),
    ("role", &["none"]),
];

/// What a statement changes by settings.
pub(crate) fn changes(text: &Text<'_>, range: &Range<usize>, catalog: &Catalog) -> Option<Change> {
    let tokens = &text.tokens[range.clone()];
    let words: Vec<&str> = tokens.iter().take(3).map_while(Placed::word).collect();
    let own = match word(tokens, 0).as_str() {
        "set" => of_set(tokens, catalog).map(|change| change.named(&words.join(" "))),
        "reset" => {
            let refused = ["all", "authorization", "role", "row_security", "session_replication_role"];
            let reset = tokens.iter().any(|token| refused.iter().any(|name| token.is(name)));
            reset.then(|| Change::Names(words.join(" ")))
        }
        "discard" => Some(Change::Names(words.join(" "))),
        _ => None,
    };
    let called = (0..tokens.len()).filter(|place| tokens[*place].is("set_config")).filter_map(|place| {
        let literal = |offset: usize| {
            let ends = tokens.get(place + offset + 1).is_some_and(|next| next.token.token == Token::Comma);
            match &tokens.get(place + offset)?.token.token {
                // A variable in it makes it any text.
                Token::SingleQuotedString(text) if ends && !text.contains('$') => Some(text.clone()),
                _ => None,
            }
        };
        let value = |value: String| value.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
        match literal(2) {
            Some(name) => of_setting(&name, literal(4).map(value).as_deref(), catalog),
            None => Some(Change::Names(String::new())),
        }
        .map(|change| change.named("set_config()"))
    });
    own.into_iter().chain(called).max_by_key(|change| matches!(change, Change::Names(_)))
}

impl Change {
    fn named(self, by: &str) -> Change {
        match self {
            Self::Printed => Self::Printed,
            Self::Names(_) => Self::Names(by.to_owned()),
        }
    }
}

/// What SET changes.
fn of_set(tokens: &[Placed], catalog: &Catalog) -> Option<Change> {
    let mut place = 1;
    while ["session", "local"].iter().any(|scope| word(tokens, place) == *scope) {
        place += 1;
    }
    let first = word(tokens, place);
    let name = match first.as_str() {
        "time" => return Some(Change::Printed),
        "authorization" | "characteristics" | "constraints" | "transaction" => {
            return (first == "authorization").then(|| Change::Names(String::new()));
        }
        "names" => "client_encoding",
        "schema" => "search_path",
        name => name,
    };
    let after = place + 1;
    let equals = tokens.get(after).is_some_and(|token| token.token.token == Token::Eq || token.is("to"));
    let values: Option<Vec<String>> = tokens[(after + usize::from(equals)).min(tokens.len())..]
        .iter()
        .filter(|token| token.token.token != Token::Comma)
        .map(|token| match &token.token.token {
            Token::SingleQuotedString(text) if !text.contains('$') => Some(text.clone()),
            Token::Number(text, _) => Some(text.clone()),
            Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
            Token::Word(word) => Some(word.value.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    of_setting(name, values.as_deref(), catalog)
}

/// What a setting changes by these values, if they are known.
fn of_setting(name: &str, values: Option<&[String]>, catalog: &Catalog) -> Option<Change> {
    let name = name.to_ascii_lowercase();
    let harmless = match name.as_str() {
        name if PRINTED.contains(&name) => return Some(Change::Printed),
        "datestyle" => {
            let iso = values.and_then(|values| values.first()).is_some_and(|value| {
                value.split(',').next().is_some_and(|style| style.trim().eq_ignore_ascii_case("iso"))
            });
            if iso {
                return Some(Change::Printed);
            }
            false
        }
        "search_path" => values.is_some_and(|path| is_search_path(path, catalog)),
        name => match FIXED.iter().find(|(fixed, _)| *fixed == name) {
            Some((_, allowed)) => matches!(values, Some([value])
                if allowed.iter().any(|allowed| value.eq_ignore_ascii_case(allowed))),
            None => true,
        },
    };
    (!harmless).then_some(Change::Names(name))
}

/// True if a search path is the one with which the catalog was read.
fn is_search_path(path: &[String], catalog: &Catalog) -> bool {
    let plain = |name: &&str| *name != "pg_catalog" && !name.starts_with("pg_temp");
    let unquoted = path.iter().map(|name| name.trim_matches('"'));
    // The system's schema comes first unless it is named at another place.
    let first = unquoted.clone().position(|name| name == "pg_catalog").is_none_or(|place| place == 0);
    let known: Vec<&str> = catalog.search_path.iter().map(String::as_str).filter(plain).collect();
    let user = |name: &&str| *name != "$user" || known.contains(name);
    first && unquoted.filter(plain).filter(user).eq(known.iter().copied())
}
