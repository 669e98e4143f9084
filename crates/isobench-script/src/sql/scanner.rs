//! Finds the end of an SQL command: a semicolon or backslash outside quotes, comments, parentheses
//! and SQL function bodies. The rules are psql's, taken from its manual and its behaviour.

use super::lexer::{block_comment, dollar_quoted, string};

/// The end of an SQL command.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// A semicolon, which is part of the text.
    Semicolon,
    /// A backslash, which the scanner has passed.
    Backslash,
    /// The end of the script.
    Input,
}

/// The text of an SQL command.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Scanned {
    /// The command with `\;` replaced by `;`.
    pub text: String,
    /// The offsets in `text` at which `\;` ended a statement.
    pub breaks: Vec<usize>,
    /// The offset in the script of the first byte of `text`.
    pub start: usize,
    /// The offsets in the script of line comments that start with `--@`, within the text or before
    /// it.
    pub marks: Vec<usize>,
}

/// Scans a script. As in pgbench, a backslash doesn't close parentheses or function bodies.
pub(crate) struct Scanner<'a> {
    source: &'a str,
    /// The offset of the next byte.
    pub at: usize,
    parentheses: usize,
    /// The number of open BEGIN and CASE within a function body.
    blocks: usize,
    words: LeadingWords,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self { source, at: 0, parentheses: 0, blocks: 0, words: LeadingWords::default() }
    }

    /// Scans one command from the current offset.
    pub(crate) fn command(&mut self) -> (Scanned, End) {
        let bytes = self.source.as_bytes();
        let mut scanned = Scanned { start: self.at, ..Scanned::default() };
        while let Some(byte) = bytes.get(self.at) {
            let from = self.at;
            match byte {
                b'\\' => {
                    self.at += 1;
                    match bytes.get(self.at) {
                        Some(b';' | b':') => self.escaped(&mut scanned),
                        _ => return (scanned, End::Backslash),
                    }
                    continue;
                }
                b';' => {
                    self.at += 1;
                    self.append(&mut scanned, from);
                    if self.parentheses == 0 && self.blocks == 0 {
                        self.words = LeadingWords::default();
                        return (scanned, End::Semicolon);
                    }
                    continue;
                }
                _ => self.token(*byte),
            }
            if self.source[from..].starts_with(":{?") && self.test_variable(&mut scanned) {
                continue;
            }
            let comment = self.source[from..].starts_with("--");
            if comment && bytes.get(from + 2) == Some(&b'@') {
                scanned.marks.push(from);
            }
            // Blanks and line comments before the first text are skipped; a block comment is text.
            let blank = byte.is_ascii_whitespace() || *byte == 0x0b || comment;
            if !(blank && scanned.text.is_empty()) {
                self.append(&mut scanned, from);
            }
        }
        (scanned, End::Input)
    }

    fn append(&self, scanned: &mut Scanned, from: usize) {
        if scanned.text.is_empty() {
            scanned.start = from;
        }
        scanned.text.push_str(&self.source[from..self.at]);
    }

    /// `\;` and `\:`: the character without the backslash.
    fn escaped(&mut self, scanned: &mut Scanned) {
        let from = self.at;
        self.at += 1;
        self.append(scanned, from);
        if self.source.as_bytes()[from] == b';' {
            scanned.breaks.push(scanned.text.len());
        }
    }

    /// psql's `:{?name}`, a test whether a variable is set. In pgbench it is always FALSE. The
    /// colon has been passed.
    fn test_variable(&mut self, scanned: &mut Scanned) -> bool {
        let from = self.at - 1;
        let name =
            self.source[from + 3..].bytes().take_while(|byte| crate::symbols::is_name_byte(*byte)).count();
        let end = from + 3 + name;
        if name == 0 || self.source.as_bytes().get(end) != Some(&b'}') {
            return false;
        }
        if scanned.text.is_empty() {
            scanned.start = from;
        }
        scanned.text.push_str("FALSE");
        self.at = end + 1;
        true
    }

    /// Skips one token that doesn't end the command.
    fn token(&mut self, first: u8) {
        let rest = &self.source[self.at..];
        match first {
            b'\'' => self.at += string(rest.as_bytes(), 0, false).0,
            b'"' => self.at += 1 + rest[1..].find('"').map_or(rest.len() - 1, |end| end + 1),
            b'-' if rest.starts_with("--") => self.at += rest.find(['\n', '\r']).unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => self.at += block_comment(rest.as_bytes()).0,
            b'$' => self.at += dollar(rest),
            b':' => self.at += colon(rest),
            b'(' => {
                self.parentheses += 1;
                self.at += 1;
            }
            b')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.at += 1;
            }
            b'0'..=b'9' => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                self.at +=
                    digits + if starts_word(&rest[digits..]) { word_length(&rest[digits..]) } else { 0 };
            }
            _ if starts_word(rest) => self.word(rest),
            _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }

    /// A word, or the prefix of a string with escapes.
    fn word(&mut self, rest: &str) {
        let length = word_length(rest);
        self.at += length;
        let word = &rest[..length];
        if word.eq_ignore_ascii_case("e") && rest[length..].starts_with('\'') {
            self.at += string(&rest.as_bytes()[length..], 0, true).0;
            return;
        }
        self.words.note(word);
        if self.words.define_routine() && self.parentheses == 0 {
            let case = word.eq_ignore_ascii_case("case") && self.blocks > 0;
            if case || word.eq_ignore_ascii_case("begin") {
                self.blocks += 1;
            } else if word.eq_ignore_ascii_case("end") {
                self.blocks = self.blocks.saturating_sub(1);
            }
        }
    }
}

/// The first four words of a command, as far as they are needed to recognise `CREATE [OR REPLACE]
/// {FUNCTION | PROCEDURE}`.
#[derive(Default)]
struct LeadingWords {
    count: usize,
    initials: [u8; 4],
}

impl LeadingWords {
    fn note(&mut self, word: &str) {
        const WORDS: [(&str, u8); 5] =
            [("create", b'c'), ("or", b'o'), ("replace", b'r'), ("function", b'f'), ("procedure", b'p')];
        if let Some(place) = self.initials.get_mut(self.count) {
            *place = WORDS
                .iter()
                .find(|(text, _)| text.eq_ignore_ascii_case(word))
                .map_or(0, |(_, initial)| *initial);
        }
        self.count += 1;
    }

    fn define_routine(&self) -> bool {
        matches!(self.initials, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p'])
    }
}

fn starts_word(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80)
}

fn word_length(text: &str) -> usize {
    text.bytes().take_while(|byte| crate::symbols::is_name_byte(*byte) || *byte == b'$').count()
}

/// The length of `::` (a cast), of a variable (a token of its own, which a dollar sign ends), or of
/// a single colon.
fn colon(text: &str) -> usize {
    match &text.as_bytes()[1..] {
        [b':', ..] => 2,
        name => 1 + name.iter().take_while(|byte| crate::symbols::is_name_byte(**byte)).count(),
    }
}

/// The length of a string in dollar quotes, of a parameter (`$1`), or of a single dollar sign.
fn dollar(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.get(1).is_some_and(u8::is_ascii_digit) {
        let digits = bytes[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let word = &text[1 + digits..];
        return 1 + digits + if starts_word(word) { word_length(word) } else { 0 };
    }
    dollar_quoted(text).map_or(1, |(length, _)| length)
}
