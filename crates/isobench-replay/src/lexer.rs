//! SQL split into tokens, so that nothing is lost: put together again they are the text. Unlike a
//! parser's it accepts any text, as what an application sent is to be counted even if it is wrong.
//!
//! Source: PostgreSQL manual, "Lexical Structure".

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Blanks or a comment.
    Blank,
    /// A word without quotation marks.
    Word,
    /// A quoted name.
    Name,
    /// A literal in quotation marks or between dollars.
    Text,
    /// A number.
    Number,
    /// `$1`.
    Parameter,
    /// An operator, or another character.
    Other,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
}

impl Token<'_> {
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
            Kind::Name => Some(self.text.trim_matches('"').replace("\"\"", "\"")),
            _ => None,
        }
    }
}

/// Splits a text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first);
        let (token, after) = rest.split_at(length);
        found.push(Token { kind, text: token });
        rest = after;
    }
    found
}

/// The tokens other than blanks and comments.
pub fn words(text: &str) -> Vec<Token<'_>> {
    tokens(text).into_iter().filter(|token| token.kind != Kind::Blank).collect()
}

/// The kind and length of the token at the beginning of a text that isn't empty.
fn next(rest: &str, first: char) -> (Kind, usize) {
    let second = rest[first.len_utf8()..].chars().next();
    match first {
        _ if is_blank(first) => {
            (Kind::Blank, rest.find(|letter: char| !is_blank(letter)).unwrap_or(rest.len()))
        }
        '-' if second == Some('-') => {
            (Kind::Blank, rest.find(['\n', '\r']).map_or(rest.len(), |end| end + 1))
        }
        '/' if second == Some('*') => (Kind::Blank, comment(rest)),
        '\'' => (Kind::Text, quoted(rest, 0, '\'', false)),
        '"' => (Kind::Name, quoted(rest, 0, '"', false)),
        'e' | 'E' if second == Some('\'') => (Kind::Text, quoted(rest, 1, '\'', true)),
        'b' | 'B' | 'x' | 'X' | 'n' | 'N' if second == Some('\'') => {
            (Kind::Text, quoted(rest, 1, '\'', false))
        }
        '$' if second.is_some_and(|second| second.is_ascii_digit()) => {
            let digits = rest[1..].find(|letter: char| !letter.is_ascii_digit());
            (Kind::Parameter, digits.map_or(rest.len(), |digits| 1 + digits))
        }
        '$' => dollar_quoted(rest).map_or((Kind::Other, 1), |length| (Kind::Text, length)),
        '0'..='9' => (Kind::Number, number(rest)),
        '.' if second.is_some_and(|second| second.is_ascii_digit()) => (Kind::Number, number(rest)),
        _ if is_letter(first) => {
            let end =
                rest.find(|letter: char| !is_letter(letter) && !letter.is_ascii_digit() && letter != '$');
            (Kind::Word, end.unwrap_or(rest.len()))
        }
        ':' if second == Some(':') => (Kind::Other, 2),
        '<' | '>' | '!' if second == Some('=') => (Kind::Other, 2),
        '<' if second == Some('>') => (Kind::Other, 2),
        '|' if second == Some('|') => (Kind::Other, 2),
        _ => (Kind::Other, first.len_utf8()),
    }
}

/// Of the blanks of Unicode PostgreSQL has only those of ASCII (`scan.l`); others are letters.
fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_' || !letter.is_ascii()
}

/// The length of a quotation whose mark is at this place.
fn quoted(rest: &str, at: usize, mark: char, escapes: bool) -> usize {
    let mut letters = rest[at + 1..].char_indices().peekable();
    while let Some((place, letter)) = letters.next() {
        if escapes && letter == '\\' {
            letters.next();
        } else if letter == mark && letters.next_if(|(_, next)| *next == mark).is_none() {
            return at + 1 + place + 1;
        }
    }
    rest.len()
}

fn dollar_quoted(rest: &str) -> Option<usize> {
    let end = rest[1..].find('$')? + 1;
    let tag = &rest[..=end];
    tag[1..end].chars().all(|letter| is_letter(letter) || letter.is_ascii_digit()).then_some(())?;
    let close = rest[tag.len()..].find(tag).map(|close| tag.len() + close + tag.len());
    Some(close.unwrap_or(rest.len()))
}

/// The length of a comment, in which others may be nested.
fn comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let exponent = matches!(bytes[at], b'e' | b'E')
            && bytes[at + 1..]
                .iter()
                .find(|byte| !matches!(byte, b'+' | b'-'))
                .is_some_and(u8::is_ascii_digit);
        if exponent {
            at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        } else if bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'.' | b'_') {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// The statements of a text, without semicolons and blanks around them; empty ones are left out.
pub fn statements(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    let mut body = Body::default();
    for token in tokens(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            ";" if depth == 0 && body.blocks == 0 && token.kind == Kind::Other => {
                found.push(&text[from..at]);
                from = at + 1;
                body = Body::default();
            }
            _ if token.kind == Kind::Word && depth == 0 => body.pass(token),
            _ => {}
        }
        at += token.text.len();
    }
    found.push(&text[from..]);
    let trimmed = found.into_iter().map(|statement| statement.trim_matches(is_blank));
    trimmed.filter(|statement| !words(statement).is_empty()).collect()
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
        fn tokens_put_together_are_the_text(text in "([a-z0-9 '\"$;:()/*\\\\.-]|\\PC){0,60}") {
            let together: String = tokens(&text).iter().map(|token| token.text).collect();
            prop_assert_eq!(&together, &text);
            // Each statement stands in the text, and none has another one in it.
            for statement in statements(&text) {
                prop_assert!(text.contains(statement));
                prop_assert!(statements(statement).len() <= 1);
            }
        }
    }
}
