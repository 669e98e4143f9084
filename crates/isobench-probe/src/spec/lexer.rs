//! Tokens of a test specification: names, SQL blocks, numbers, punctuation.

use super::error::{Position, SpecProblem};

/// The reserved words, which must be quoted when used as names.
pub const KEYWORDS: [&str; 6] = ["notices", "permutation", "session", "setup", "step", "teardown"];

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// One of [`KEYWORDS`].
    Keyword(&'static str),
    /// A name, plain or quoted.
    Name(String),
    /// A block of SQL.
    Sql(String),
    /// Digits.
    Number(String),
    /// One of `( ) , *`.
    Sign(char),
    /// The end of the text.
    End,
}

impl Token {
    /// The token as shown in messages.
    pub fn describe(&self) -> String {
        match self {
            Token::Keyword(word) => format!("\"{word}\""),
            Token::Name(name) => format!("the name \"{name}\""),
            Token::Sql(_) => "an SQL block".to_owned(),
            Token::Number(digits) => format!("the number {digits}"),
            Token::Sign(sign) => format!("\"{sign}\""),
            Token::End => "the end of the file".to_owned(),
        }
    }
}

/// Splits a text into tokens with their positions; the last one is [`Token::End`].
///
/// # Errors
/// The invalid text, and its position.
pub fn tokens(text: &str) -> Result<Vec<(Position, Token)>, (Position, SpecProblem)> {
    let mut lexer = Lexer { rest: text, position: Position { line: 1, column: 1 } };
    let mut found = Vec::new();
    loop {
        lexer.skip_blanks();
        let position = lexer.position;
        let token = lexer.token().map_err(|problem| (position, problem))?;
        let done = token == Token::End;
        found.push((position, token));
        if done {
            return Ok(found);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    /// Consumes `length` bytes, which end on a character boundary.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        for character in taken.chars() {
            if character == '\n' {
                self.position = Position { line: self.position.line.saturating_add(1), column: 1 };
            } else {
                self.position.column = self.position.column.saturating_add(1);
            }
        }
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len()))
    }

    /// Skips blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n' | '\x0c'));
            if !self.rest.starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, SpecProblem> {
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        match first {
            '{' => self.sql(),
            '"' => self.quoted(),
            '(' | ')' | ',' | '*' => {
                self.take(1);
                Ok(Token::Sign(first))
            }
            '0'..='9' => Ok(Token::Number(self.take_while(|c| c.is_ascii_digit()).to_owned())),
            _ if begins_name(first) => {
                let word = self.take_while(|c| begins_name(c) || c.is_ascii_digit() || c == '$');
                let keyword = KEYWORDS.into_iter().find(|keyword| *keyword == word);
                Ok(keyword.map_or_else(|| Token::Name(word.to_owned()), Token::Keyword))
            }
            _ => Err(SpecProblem::Character(first)),
        }
    }

    /// The text between braces, without the blanks next to the braces but with line breaks.
    fn sql(&mut self) -> Result<Token, SpecProblem> {
        let length = self.rest.find('}').ok_or(SpecProblem::UnterminatedSql)?;
        let block = self.take(length + 1);
        let inner = &block[1..length];
        let blank = |c| matches!(c, ' ' | '\t' | '\r' | '\x0c');
        Ok(Token::Sql(inner.trim_matches(blank).to_owned()))
    }

    /// A name in double quotes; a doubled quote represents one.
    fn quoted(&mut self) -> Result<Token, SpecProblem> {
        let mut name = String::new();
        let mut at = 1;
        loop {
            let rest = &self.rest[at..];
            let length = rest.find(['"', '\n']).ok_or(SpecProblem::UnterminatedName)?;
            if rest[length..].starts_with('\n') {
                return Err(SpecProblem::UnterminatedName);
            }
            name.push_str(&rest[..length]);
            at += length + 1;
            if !self.rest[at..].starts_with('"') {
                self.take(at);
                return Ok(Token::Name(name));
            }
            name.push('"');
            at += 1;
        }
    }
}

/// Non-ASCII letters can be part of names, as in SQL.
fn begins_name(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|(_, token)| token).collect()
    }

    #[test]
    fn names_may_be_quoted() {
        let name = |text: &str| Token::Name(text.to_owned());
        let expected =
            [name("a$1"), name("a \"b"), name("step"), Token::Keyword("step"), name("é"), Token::End];
        assert_eq!(words("a$1 # \"comment\n\"a \"\"b\" \"step\" step é"), expected);
    }

    #[test]
    fn sql_keeps_its_lines() {
        assert_eq!(words("{\n  a\n b\n }")[0], Token::Sql("\n  a\n b\n".to_owned()));
        assert_eq!(words("{  a; # b  }")[0], Token::Sql("a; # b".to_owned()));
    }

    #[test]
    fn places_are_counted_in_characters() {
        let (position, problem) = tokens("é {\n }  ;").unwrap_err();
        assert_eq!((position.to_string().as_str(), problem), ("2:5", SpecProblem::Character(';')));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[\\PC\n{}\"#a*]*") {
            let _ = tokens(&text);
        }
    }
}
