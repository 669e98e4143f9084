//! The tokens of an SQL command with their places, and its statements.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

use isobench_script::{Piece, Slot, Sql, TextPart};
use sqlparser::ast::{Value, ValueWithSpan};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// A token other than blanks and comments.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The token.
    pub token: TokenWithSpan,
    /// Its place in the text, in bytes.
    pub range: Range<usize>,
}

impl Placed {
    /// True if it is an unquoted word, in any case.
    pub fn is(&self, keyword: &str) -> bool {
        self.word().is_some_and(|word| word.eq_ignore_ascii_case(keyword))
    }

    /// An unquoted word as written.
    pub fn word(&self) -> Option<&str> {
        match &self.token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
            _ => None,
        }
    }

    /// A word as SQL compares it: quoted, or in lower case.
    pub fn name(&self) -> Option<String> {
        match &self.token.token {
            Token::Word(word) => Some(folded(&word.value, word.quote_style.is_some())),
            _ => None,
        }
    }
}

/// A name as SQL compares it.
pub fn folded(name: &str, quoted: bool) -> String {
    if quoted { name.to_owned() } else { name.to_ascii_lowercase() }
}

/// A statement as the server is asked about it.
#[derive(Debug)]
pub struct AskedText {
    /// Its text, with `$1`, `$2`, …
    pub text: String,
    /// The numbers of its parameters in the command.
    pub parameters: Vec<usize>,
}

/// The text of a command, as tokens.
pub struct Text<'a> {
    /// The text as it is sent, with `$1`, `$2`, …
    pub source: &'a str,
    /// Its tokens.
    pub tokens: Vec<Placed>,
    /// The token at a place as the parser tells it.
    by_location: HashMap<(u64, u64), usize>,
    /// The variables of `$1`, `$2`, …
    params: Vec<Slot>,
    /// The variables as written.
    names: Vec<String>,
    /// The literals that variables are substituted in, by the places of their tokens.
    partly_variable: BTreeSet<(u64, u64)>,
    /// The places of variables in the text, with their ends.
    variables: BTreeMap<usize, (usize, Slot)>,
}

impl<'a> Text<'a> {
    /// Splits a command into tokens. `None` if it has characters that aren't SQL, or variables that
    /// are part of a name.
    pub fn scan(sql: &'a Sql) -> Option<Text<'a>> {
        let text = sql.parameterized.as_str();
        let placed = placed(text)?;
        let places = placed.iter().enumerate();
        let by_location = places.map(|(at, token)| (location(token.token.span.start), at)).collect();
        let mut scanned = Text {
            source: text,
            tokens: placed,
            by_location,
            params: sql.params.clone(),
            names: sql.pieces.iter().filter_map(variable_name).collect(),
            partly_variable: BTreeSet::new(),
            variables: BTreeMap::new(),
        };
        scanned.place_variables(sql)?;
        Some(scanned)
    }

    /// Checks that every variable is a token of its own, or in a literal or comment.
    fn place_variables(&mut self, sql: &Sql) -> Option<()> {
        let (mut at, mut number, mut parameters) = (0, 0_usize, 0_usize);
        for piece in &sql.pieces {
            let length = match piece {
                Piece::Text(text) => text.len(),
                Piece::Variable { .. } => {
                    number += 1;
                    1 + number.to_string().len()
                }
            };
            if let Piece::Variable { slot, .. } = piece {
                let place = at..at + length;
                self.variables.insert(at, (at + length, *slot));
                let touching = self.tokens.partition_point(|token| token.range.end <= place.start);
                if let Some(token) = self.tokens.get(touching).filter(|token| token.range.start < place.end) {
                    match &token.token.token {
                        Token::Placeholder(_) if token.range == place => parameters += 1,
                        literal if is_string(literal) => {
                            self.partly_variable.insert(location(token.token.span.start));
                        }
                        _ => return None,
                    }
                }
            }
            at += length;
        }
        let placeholders =
            self.tokens.iter().filter(|token| matches!(token.token.token, Token::Placeholder(_))).count();
        // A `$1` of the script's author next to variables would be mistaken for one.
        let plain = placeholders == parameters || self.params.is_empty();
        (plain && at == self.source.len()).then_some(())
    }

    /// The token that starts at a place.
    pub fn at(&self, place: Location) -> Option<usize> {
        self.by_location.get(&location(place)).copied()
    }

    /// True if a variable is substituted in the literal at a place.
    pub fn is_partly_variable(&self, place: Location) -> bool {
        self.partly_variable.contains(&location(place))
    }

    /// The variable of `$1`, `$2`, …
    pub fn variable(&self, placeholder: &str) -> Option<Slot> {
        self.variable_at(placeholder.strip_prefix('$')?.parse().ok()?)
    }

    /// The variable of the parameter with this number, from 1.
    pub fn variable_at(&self, number: usize) -> Option<Slot> {
        self.params.get(number.checked_sub(1)?).copied()
    }

    /// The variables that stand outside of quotes in a part of the text.
    pub fn unquoted(&self, range: &Range<usize>) -> BTreeSet<Slot> {
        let slot = |token: &Placed| match &token.token.token {
            Token::Placeholder(name) => {
                let number: usize = name.strip_prefix('$')?.parse().ok()?;
                self.params.get(number.checked_sub(1)?).copied()
            }
            _ => None,
        };
        self.tokens[range.clone()].iter().filter_map(slot).collect()
    }

    /// A range of tokens as the server is asked about it: with `$1`, `$2`, … in order, also in place of literals that
    /// are a variable and nothing else. A value in quotes has the type that the server infers, as such a parameter has.
    pub fn asked(&self, range: &Range<usize>) -> AskedText {
        let bytes = self.bytes(range);
        let (mut text, mut parameters, mut at) = (String::new(), Vec::new(), bytes.start);
        for token in &self.tokens[range.clone()] {
            let number = match &token.token.token {
                Token::Placeholder(name) => name.strip_prefix('$').and_then(|number| number.parse().ok()),
                Token::SingleQuotedString(value) if self.is_partly_variable(token.token.span.start) => {
                    let whole = self.parts_of_literal(token.token.span.start);
                    let only = matches!(whole.as_deref(), Some([TextPart::Variable(_)]));
                    value.strip_prefix('$').filter(|_| only).and_then(|number| number.parse().ok())
                }
                _ => None,
            };
            if let Some(number) = number {
                text.push_str(&self.source[at..token.range.start]);
                parameters.push(number);
                let _ = write!(text, "${}", parameters.len());
                at = token.range.end;
            }
        }
        text.push_str(&self.source[at..bytes.end]);
        AskedText { text, parameters }
    }

    /// True if a minus stands directly before a variable in a range of tokens: `-:d`, which becomes `--3`.
    pub fn has_minus_before_variable(&self, range: &Range<usize>) -> bool {
        let before = |at: &usize| at.checked_sub(1).and_then(|at| self.source.as_bytes().get(at));
        self.variables.range(self.bytes(range)).any(|(at, _)| before(at) == Some(&b'-'))
    }

    /// The literals of a range of tokens in which variables are substituted: the text between their quotes, and its
    /// parts if it is a plain one.
    pub fn literals_with_variables(&self, range: &Range<usize>) -> BTreeMap<String, Option<Vec<TextPart>>> {
        let tokens = self.tokens[range.clone()].iter();
        let literals = tokens.filter(|token| self.is_partly_variable(token.token.span.start));
        let with_parts = |literal: &Placed| {
            let text = self.source.get(literal.range.start + 1..literal.range.end.saturating_sub(1));
            let parts = match &literal.token.token {
                Token::SingleQuotedString(_) => self.parts_of_literal(literal.token.span.start),
                _ => None,
            };
            (text.unwrap_or_default().to_owned(), parts)
        };
        literals.map(with_parts).collect()
    }

    /// The number of a parameter that the script's author wrote as `$1`, `$2`, …
    pub fn parameter(&self, placeholder: &str) -> Option<u16> {
        let number = placeholder.strip_prefix('$').filter(|_| self.params.is_empty())?;
        number.parse().ok()
    }

    /// The highest number of such a parameter in a range of tokens; 0 if there is none.
    pub fn parameters(&self, range: &Range<usize>) -> u16 {
        let number = |token: &Placed| match &token.token.token {
            Token::Placeholder(name) => self.parameter(name),
            _ => None,
        };
        self.tokens[range.clone()].iter().filter_map(number).max().unwrap_or(0)
    }

    /// The variables in a token: the one that it is, or those that are substituted in a literal.
    pub fn variables_in(&self, token: usize) -> Vec<Slot> {
        let Some(token) = self.tokens.get(token) else { return Vec::new() };
        self.variables.range(token.range.clone()).map(|(_, (_, slot))| *slot).collect()
    }

    /// The parts of the literal at a place, if it is a plain one in which variables are substituted.
    pub fn parts_of_literal(&self, place: Location) -> Option<Vec<TextPart>> {
        let token = self.tokens.get(self.at(place)?)?;
        let (start, end) = (token.range.start + 1, token.range.end.checked_sub(1)?);
        let plain = |text: &str| (!text.contains(['\'', '\\'])).then(|| TextPart::Text(text.to_owned()));
        let (mut parts, mut at) = (Vec::new(), start);
        for (from, (to, slot)) in self.variables.range(start..end) {
            parts.push(plain(self.source.get(at..*from)?)?);
            parts.push(TextPart::Variable(*slot));
            at = *to;
        }
        parts.push(plain(self.source.get(at..end)?)?);
        parts.retain(|part| *part != TextPart::Text(String::new()));
        Some(parts)
    }

    /// The variable that a literal consists of, as `':name'`.
    pub fn variable_in_quotes(&self, literal: &ValueWithSpan) -> Option<Slot> {
        let Value::SingleQuotedString(_) = literal.value else { return None };
        match self.parts_of_literal(literal.span.start)?[..] {
            [TextPart::Variable(slot)] => Some(slot),
            _ => None,
        }
    }

    /// The statements, as ranges of tokens without semicolons; empty ones are left out.
    pub fn statements(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let (mut depth, mut from) = (0_usize, 0);
        for (place, token) in self.tokens.iter().enumerate() {
            match token.token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::SemiColon if depth == 0 => {
                    found.push(from..place);
                    from = place + 1;
                }
                _ => {}
            }
        }
        found.push(from..self.tokens.len());
        found.retain(|range| !range.is_empty());
        found
    }

    /// The text of a range of tokens with the names of variables, on one line; that of none is empty.
    pub fn named(&self, range: &Range<usize>) -> String {
        self.in_lines(self.bytes(range)).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// A part of the text with the names of variables, in its lines and with its comments.
    pub fn in_lines(&self, bytes: Range<usize>) -> String {
        let mut named = String::new();
        let mut rest = &self.source[bytes];
        while let Some(at) = rest.find('$') {
            named.push_str(&rest[..at]);
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let number = rest[at + 1..=at + digits].parse::<usize>().ok();
            match number.and_then(|number| self.names.get(number.checked_sub(1)?)) {
                Some(name) => named.push_str(name),
                None => named.push_str(&rest[at..=at + digits]),
            }
            rest = &rest[at + 1 + digits..];
        }
        named.push_str(rest);
        named
    }

    /// Where a token begins, in bytes; for the one after the last of a range, where that range ends.
    pub fn start_of(&self, token: usize, range: &Range<usize>) -> usize {
        if token < range.end { self.tokens[token].range.start } else { self.bytes(range).end }
    }

    /// The place of a range of tokens, in bytes.
    pub fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        match (self.tokens.get(range.start), self.tokens.get(range.end.wrapping_sub(1))) {
            (Some(first), Some(last)) if range.start < range.end => first.range.start..last.range.end,
            _ => 0..0,
        }
    }

    /// The text of a range of tokens, as written.
    pub fn written(&self, range: &Range<usize>) -> &'a str {
        &self.source[self.bytes(range)]
    }
}

/// The tokens of a text, other than blanks and comments. `None` if it has characters that aren't SQL.
pub(crate) fn placed(text: &str) -> Option<Vec<Placed>> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let mut offsets = Offsets::new(text);
    let mut placed = Vec::with_capacity(tokens.len());
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        let range = offsets.of(token.span.start)?..offsets.of(token.span.end)?;
        if !agrees(&token.token, text.get(range.clone())?) {
            return None;
        }
        placed.push(Placed { token, range });
    }
    Some(placed)
}

fn variable_name(piece: &Piece) -> Option<String> {
    match piece {
        Piece::Variable { written, .. } => Some(written.clone()),
        Piece::Text(_) => None,
    }
}

fn location(place: Location) -> (u64, u64) {
    (place.line, place.column)
}

fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

/// True if a token is what is written at its place: a guard against a wrong place.
fn agrees(token: &Token, written: &str) -> bool {
    match token {
        Token::Word(word) => match word.quote_style {
            None => written == word.value,
            Some(quote) => written.starts_with(quote) && written.ends_with(quote),
        },
        Token::Placeholder(text) => written == text,
        Token::SingleQuotedString(_) => written.starts_with('\'') && written.ends_with('\''),
        Token::LParen => written == "(",
        Token::RParen => written == ")",
        Token::Comma => written == ",",
        Token::SemiColon => written == ";",
        Token::Period => written == ".",
        _ => !written.is_empty(),
    }
}

/// The offsets of the tokenizer's lines and columns, which count characters from 1. Places come in order,
/// so each character is passed once.
struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
    /// The last place, and its offset.
    last: (usize, usize, usize),
    /// The characters that were passed.
    #[cfg(test)]
    passed: usize,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self {
            text,
            lines: std::iter::once(0).chain(breaks).collect(),
            last: (0, 0, 0),
            #[cfg(test)]
            passed: 0,
        }
    }

    fn of(&mut self, place: Location) -> Option<usize> {
        let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
        let (from, start) = match self.last {
            (last, from, start) if last == line && from <= column => (from, start),
            _ => (0, *self.lines.get(line)?),
        };
        let rest = &self.text[start..];
        let within = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column - from)?;
        self.last = (line, column, start + within);
        #[cfg(test)]
        {
            self.passed += column - from;
        }
        Some(start + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_passed_once() {
        let list = (0..1000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        let text = format!("SELECT 'ä'\n, b FROM t WHERE a IN ({list})");
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize_with_location().expect("tokens");
        let mut offsets = Offsets::new(&text);
        for token in tokens.iter().filter(|token| token.token != Token::EOF) {
            let range =
                offsets.of(token.span.start).expect("a place")..offsets.of(token.span.end).expect("one");
            assert!(agrees(&token.token, &text[range]), "{token:?}");
        }
        assert!(offsets.passed <= text.len(), "{} of {}", offsets.passed, text.len());
    }
}
