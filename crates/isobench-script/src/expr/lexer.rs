//! Splits the text of an expression into tokens, one at a time, so that errors are reported in
//! reading order.

use crate::symbols::is_name_byte;

/// A token; texts are slices of the source.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Int(i64),
    /// 9223372036854775808, which is valid only directly after a minus sign.
    MinMagnitude,
    Double(f64),
    Variable(&'a str),
    Name(&'a str),
    Symbol(&'static str),
    Keyword(Keyword),
    End,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Case,
    When,
    Then,
    Else,
    End,
    Is,
    IsNull,
    NotNull,
    Null,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 14] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("case", Keyword::Case),
    ("when", Keyword::When),
    ("then", Keyword::Then),
    ("else", Keyword::Else),
    ("end", Keyword::End),
    ("is", Keyword::Is),
    ("isnull", Keyword::IsNull),
    ("notnull", Keyword::NotNull),
    ("null", Keyword::Null),
    ("true", Keyword::True),
    ("false", Keyword::False),
];

/// Longest first, so that the first match is the right one.
const SYMBOLS: [&str; 20] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">", "|", "#", "&", "~", "(", ")",
];

/// Text that isn't a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LexError {
    pub message: &'static str,
    pub detail: String,
}

pub(super) struct Lexer<'a> {
    /// One logical line, including its continuations but not the line break at its end.
    source: &'a str,
    /// The start of the next token, or of the error.
    pub offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str, offset: usize) -> Self {
        Self { source, offset }
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, LexError> {
        self.skip_blanks();
        let rest = &self.source[self.offset..];
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if first == ',' {
            self.offset += 1;
            return Ok(Token::Symbol(","));
        }
        if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number(rest);
        }
        if first == ':' {
            let length = name_length(&rest[1..]);
            if length > 0 {
                self.offset += 1 + length;
                return Ok(Token::Variable(&rest[1..=length]));
            }
        }
        if first == '_' || first.is_ascii_alphabetic() || !first.is_ascii() {
            let word = &rest[..name_length(rest)];
            self.offset += word.len();
            let keyword = KEYWORDS.iter().find(|(text, _)| text.eq_ignore_ascii_case(word));
            return Ok(keyword.map_or(Token::Name(word), |(_, keyword)| Token::Keyword(*keyword)));
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.offset += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        self.offset += first.len_utf8();
        Err(LexError { message: "unexpected character", detail: first.to_string() })
    }

    fn skip_blanks(&mut self) {
        let bytes = self.source.as_bytes();
        loop {
            match bytes.get(self.offset..).unwrap_or_default() {
                [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => self.offset += 1,
                [b'\\', b'\n', ..] => self.offset += 2,
                [b'\\', b'\r', b'\n', ..] => self.offset += 3,
                _ => return,
            }
        }
    }

    fn number(&mut self, rest: &'a str) -> Result<Token<'a>, LexError> {
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        let mut double = false;
        if bytes.get(end) == Some(&b'.') {
            double = true;
            end += 1;
            end += digits(end);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = bytes.get(end + 1 + sign..).map_or(0, |_| digits(end + 1 + sign));
            if exponent > 0 {
                double = true;
                end += 1 + sign + exponent;
            }
        }
        let text = &rest[..end];
        self.offset += end;
        let overflow = |message| LexError { message, detail: text.to_owned() };
        if double {
            return crate::number::parse_double(text)
                .map(Token::Double)
                .ok_or_else(|| overflow("double constant overflow"));
        }
        if text == "9223372036854775808" {
            return Ok(Token::MinMagnitude);
        }
        text.parse().map(Token::Int).map_err(|_| overflow("bigint constant overflow"))
    }
}

fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| is_name_byte(*byte)).count()
}
