//! SQL split into tokens, so that nothing is lost: put together again they are the text. Unlike a
//! parser's it accepts any text, as what an application sent is to be counted even if it is wrong.
//!
//! Source: PostgreSQL manual, "Lexical Structure", and how its server reads what the manual leaves open.

mod quotation;

pub(crate) use quotation::{block_comment, dollar_quoted, string};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Blanks.
    Blank,
    /// A comment with its delimiters, of `--` without the end of the line.
    Comment,
    /// A word without quotation marks.
    Word,
    /// A quoted name.
    Name,
    /// A literal in quotation marks or between dollars, with all lines on which it continues.
    Text,
    /// A number.
    Number,
    /// `$1`.
    Parameter,
    /// An operator, or another character.
    Other,
}

/// What backslashes do in string literals without a letter before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backslashes {
    /// Nothing: `standard_conforming_strings` is on.
    #[default]
    Plain,
    /// They escape, as in `E'…'`: `standard_conforming_strings` is off.
    Escape,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// False if the text ends within it.
    pub closed: bool,
}

impl<'a> Token<'a> {
    /// True if it is this word, in letters of either case, or this operator.
    pub fn is(&self, word: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Other) && self.text.eq_ignore_ascii_case(word)
    }

    /// True if it is one of these words.
    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// A name as SQL compares it.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_ascii_lowercase()),
            Kind::Name => {
                let inner = &self.text[self.text.find('"')? + 1..];
                Some(inner.strip_suffix('"').unwrap_or(inner).replace("\"\"", "\""))
            }
            _ => None,
        }
    }

    /// A literal's delimiters and what is between them, as written.
    pub fn literal(&self) -> Option<(&'a str, &'a str, &'a str)> {
        if self.kind != Kind::Text {
            return None;
        }
        let open = match self.text.strip_prefix('$') {
            Some(tag) => tag.find('$')? + 2,
            None => self.text.find('\'')? + 1,
        };
        let close = if !self.closed {
            0
        } else if self.text.starts_with('$') {
            open
        } else {
            1
        };
        let end = self.text.len().checked_sub(close).filter(|end| *end >= open)?;
        Some((&self.text[..open], &self.text[open..end], &self.text[end..]))
    }

    /// The value of a literal in quotation marks; `None` for one of bits, and for some escapes.
    pub fn value(&self) -> Option<String> {
        let (open, inner, _) = self.literal()?;
        if open.starts_with('$') {
            return Some(inner.to_owned());
        }
        match open.as_bytes()[0] {
            b'b' | b'B' | b'x' | b'X' | b'u' | b'U' => None,
            first => quotation::value(inner, matches!(first, b'e' | b'E')),
        }
    }
}

/// Splits a text, in which backslashes are plain.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    tokens_with(text, Backslashes::Plain)
}

/// Splits a text.
pub fn tokens_with(text: &str, backslashes: Backslashes) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length, closed) = next(rest, first, backslashes);
        let (token, after) = rest.split_at(length);
        found.push(Token { kind, text: token, closed });
        rest = after;
    }
    found
}

/// The tokens of a text; `None` if it isn't certain how a server reads it: a quotation or comment has
/// no end, servers differ, or it depends on what backslashes do, which may be unknown (`None`).
pub fn certain_tokens(text: &str, backslashes: Option<Backslashes>) -> Option<Vec<Token<'_>>> {
    let tokens = tokens_with(text, backslashes.unwrap_or_default());
    // `1e'…'` is `1` and a literal with escapes, an error, or something else, by the server's version.
    let touches = |pair: &[Token<'_>]| {
        pair[0].kind == Kind::Number && pair[1].kind == Kind::Text && !pair[1].text.starts_with(['\'', '$'])
    };
    let whole = tokens.iter().all(|token| token.closed) && !tokens.windows(2).any(touches);
    let agreed =
        backslashes.is_some() || !text.contains('\\') || tokens_with(text, Backslashes::Escape) == tokens;
    (whole && agreed && !text.contains('\0')).then_some(tokens)
}

/// The tokens other than blanks and comments.
pub fn words(text: &str) -> Vec<Token<'_>> {
    let mut found = tokens(text);
    found.retain(|token| !matches!(token.kind, Kind::Blank | Kind::Comment));
    found
}

/// The kind and length of the token at the beginning of a text that isn't empty, and whether it ends.
fn next(rest: &str, first: char, backslashes: Backslashes) -> (Kind, usize, bool) {
    let bytes = rest.as_bytes();
    let second = bytes.get(1).copied().unwrap_or(0);
    let of = |kind: Kind, (length, closed): (usize, bool)| (kind, length, closed);
    let ended = |kind: Kind, length: usize| (kind, length, true);
    if let Some(prefix) = quotation::prefix(bytes) {
        let escapes = match bytes[0] {
            b'e' | b'E' => true,
            b'\'' | b'n' | b'N' => backslashes == Backslashes::Escape,
            _ => false,
        };
        return match bytes[prefix] {
            b'"' => of(Kind::Name, quotation::name(bytes, prefix)),
            _ => of(Kind::Text, string(bytes, prefix, escapes)),
        };
    }
    match first {
        _ if is_blank(bytes[0]) => {
            ended(Kind::Blank, bytes.iter().take_while(|byte| is_blank(**byte)).count())
        }
        '-' if second == b'-' => ended(Kind::Comment, quotation::line_comment(bytes)),
        '/' if second == b'*' => of(Kind::Comment, block_comment(bytes)),
        '$' if second.is_ascii_digit() => {
            ended(Kind::Parameter, 1 + bytes[1..].iter().take_while(|byte| byte.is_ascii_digit()).count())
        }
        '$' => dollar_quoted(rest).map_or((Kind::Other, 1, true), |found| of(Kind::Text, found)),
        '0'..='9' => ended(Kind::Number, number(bytes)),
        '.' if second.is_ascii_digit() => ended(Kind::Number, number(bytes)),
        _ if is_letter(bytes[0]) => {
            let in_word = |byte: &&u8| is_letter(**byte) || byte.is_ascii_digit() || **byte == b'$';
            ended(Kind::Word, bytes.iter().take_while(in_word).count())
        }
        ':' if second == b':' => ended(Kind::Other, 2),
        '<' | '>' | '!' if second == b'=' => ended(Kind::Other, 2),
        '<' if second == b'>' => ended(Kind::Other, 2),
        '|' if second == b'|' => ended(Kind::Other, 2),
        _ => ended(Kind::Other, first.len_utf8()),
    }
}

/// True for what PostgreSQL takes for a blank. Others, such as U+00A0, are letters.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// True for what a word may begin with. All that isn't ASCII is a letter.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// The length of a number, with letters that touch it: `0x1F`, `1_000`.
fn number(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if at > 0 && quotation::prefix(&bytes[at..]).is_some() {
            break;
        } else if matches!(byte, b'e' | b'E') && bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at += 1 + sign;
        } else if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// The body of a routine in a statement, whose own statements end with semicolons (`BEGIN ATOMIC … END`).
#[derive(Default)]
struct Body {
    /// The words before the kind of the object: `CREATE`, `OR` and `REPLACE`.
    leading: usize,
    of_routine: Option<bool>,
    blocks: usize,
}

impl Body {
    fn pass(&mut self, word: Token<'_>) {
        let Some(of_routine) = self.of_routine else {
            if ["CREATE", "OR", "REPLACE"].get(self.leading).is_some_and(|next| word.is(next)) {
                self.leading += 1;
            } else {
                let creates = [1, 3].contains(&self.leading);
                self.of_routine = Some(creates && word.is_any(&["FUNCTION", "PROCEDURE"]));
            }
            return;
        };
        if of_routine && (word.is("BEGIN") || word.is("CASE") && self.blocks > 0) {
            self.blocks += 1;
        } else if of_routine && word.is("END") {
            self.blocks = self.blocks.saturating_sub(1);
        }
    }
}

/// The statements of a text, without semicolons and blanks around them; empty ones are left out.
pub fn statements(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    let mut empty = true;
    let mut end = |range: std::ops::Range<usize>, empty: bool| {
        if !empty {
            found.push(text[range].trim_matches(|letter: char| letter.is_ascii() && is_blank(letter as u8)));
        }
    };
    let mut body = Body::default();
    for token in tokens(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if token.kind == Kind::Word && depth == 0 => body.pass(token),
            _ => {}
        }
        if token.text == ";" && depth == 0 && body.blocks == 0 {
            end(from..at, empty);
            (from, empty, body) = (at + 1, true, Body::default());
        } else {
            empty &= matches!(token.kind, Kind::Blank | Kind::Comment);
        }
        at += token.text.len();
    }
    end(from..text.len(), empty);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Vec<&str> {
        words(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn quotations_and_comments_are_one_token_each() {
        assert_eq!(shown("a='it''s; x'--;\n+E'\\';'"), ["a", "=", "'it''s; x'", "+", "E'\\';'"]);
        assert_eq!(shown("$t$ ; $t$ $1 /* ; /* */ ; */ \"a\"\"b\""), ["$t$ ; $t$", "$1", "\"a\"\"b\""]);
        assert_eq!(shown("x::int>=1.5e-3,.5"), ["x", "::", "int", ">=", "1.5e-3", ",", ".5"]);
        assert_eq!(shown("a --x\r'b'"), ["a", "'b'"], "a comment ends at a carriage return, too");
        assert_eq!(shown("*/'a'*/*b*/'c'1e--d\n'e'"), ["*", "/", "'a'", "*", "'c'", "1e", "'e'"]);
        assert_eq!(shown("a$b$c 1$$d$$ $1$x$e$x$"), ["a$b$c", "1", "$$d$$", "$1", "$x$e$x$"]);
        assert_eq!(shown("U&'a\\'U&\"b\"\u{a0}u n'c'"), ["U&'a\\'", "U&\"b\"", "\u{a0}u", "n'c'"]);
    }

    #[test]
    fn literals_that_continue_on_another_line_are_one_and_keep_their_escapes() {
        assert_eq!(shown("E'a'\n'it\\'s' 'b'"), ["E'a'\n'it\\'s'", "'b'"]);
        assert_eq!(shown("E'a' -- c\n -- 'd'\n '\\''"), ["E'a' -- c\n -- 'd'\n '\\''"]);
        assert_eq!(shown("E'a'--\n'\\'b',c"), ["E'a'--\n'\\'b'", ",", "c"]);
        for text in ["E'a' 'it\\'", "E'a' /* \n */ 'it\\'"] {
            assert_eq!(shown(text).last(), Some(&"'it\\'"), "{text}");
        }
        let value = |text| tokens(text).first().and_then(Token::value);
        assert_eq!(value("E'a'\n'it\\'s'").as_deref(), Some("ait's"));
        assert_eq!(value("'a''b' -- it's\n'\\c'").as_deref(), Some("a'b\\c"));
        assert_eq!((value("$a$'x$a$").as_deref(), value("x'1'")), (Some("'x"), None));
    }

    #[test]
    fn backslashes_do_what_the_session_says() {
        let texts = |text, backslashes| {
            let found: Vec<&str> = tokens_with(text, backslashes).iter().map(|token| token.text).collect();
            found
        };
        assert_eq!(texts("'a\\','b'", Backslashes::Plain), ["'a\\'", ",", "'b'"]);
        assert_eq!(texts("'a\\','b'", Backslashes::Escape), ["'a\\','", "b'"]);
        assert_eq!(texts("X'\\'b", Backslashes::Escape), ["X'\\'", "b"]);
    }

    #[test]
    fn what_servers_may_read_otherwise_is_uncertain() {
        for (text, known, certain) in [
            ("SELECT 'a\\', 'b'", None, false),
            ("SELECT 'a\\', 'b'", Some(Backslashes::Plain), true),
            ("SELECT 'a\\', 'b'", Some(Backslashes::Escape), false),
            ("SELECT 'a\\'', b", Some(Backslashes::Escape), true),
            ("SELECT 'a\\nb', E'\\''", None, true),
            ("SELECT $a$\\'$a$", None, true),
            ("SELECT 'a", None, false),
            ("SELECT \"a", None, false),
            ("SELECT $$a", None, false),
            ("SELECT 1 /* a", None, false),
            ("SELECT 1e'a'", Some(Backslashes::Plain), false),
            ("SELECT 'a\0b'", Some(Backslashes::Plain), false),
            ("SELECT 1, 'a', $$b$$", None, true),
        ] {
            assert_eq!(certain_tokens(text, known).is_some(), certain, "{text} {known:?}");
        }
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_everything() {
        assert_eq!(
            statements("BEGIN; SELECT ';' ;; /* ; */ COMMIT;--end"),
            ["BEGIN", "SELECT ';'", "/* ; */ COMMIT"]
        );
        assert_eq!(statements(" ; -- nothing"), Vec::<&str>::new());
        let routine = "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END";
        assert_eq!(statements(&format!("{routine}; BEGIN; END;")), [routine, "BEGIN", "END"]);
        assert_eq!(statements("SELECT 1 -- a\r; SELECT '\u{a0}'"), ["SELECT 1 -- a", "SELECT '\u{a0}'"]);
    }

    proptest! {
        #[test]
        fn tokens_put_together_are_the_text(text in "([a-z0-9 '\"$;:()/*\\\\.\n-]|\\PC){0,60}") {
            for backslashes in [Backslashes::Plain, Backslashes::Escape] {
                let together: String = tokens_with(&text, backslashes).iter().map(|token| token.text).collect();
                prop_assert_eq!(&together, &text);
            }
            for token in tokens(&text) {
                let parts = token.literal().map(|(open, inner, close)| [open, inner, close].concat());
                prop_assert_eq!(parts.unwrap_or_else(|| token.text.to_owned()), token.text);
            }
            // Each statement stands in the text, and none has another one in it.
            for statement in statements(&text) {
                prop_assert!(text.contains(statement));
                prop_assert!(statements(statement).len() <= 1);
            }
        }
    }
}
