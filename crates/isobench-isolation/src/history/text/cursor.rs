//! A position in a line, with methods that parse an element; the caller names the expected element,
//! which becomes the error's text.

use std::str::FromStr;

use super::super::TextError;
use super::{begins_name, continues_name};

pub(super) struct Cursor<'l> {
    line: &'l str,
    at: usize,
    number: u64,
}

type Read<T = ()> = Result<T, TextError>;

impl<'l> Cursor<'l> {
    /// The start of the line with this number.
    pub fn new(line: &'l str, number: u64) -> Cursor<'l> {
        Cursor { line, at: 0, number }
    }

    /// The line's number.
    pub fn line_number(&self) -> u64 {
        self.number
    }

    fn rest(&self) -> &'l str {
        &self.line[self.at..]
    }

    /// An error at the current position.
    pub fn error(&self, problem: String) -> TextError {
        let column = self.line[..self.at].chars().count() as u64 + 1;
        TextError { line: self.number, column, problem }
    }

    /// The error that another element was expected here.
    pub fn expected(&self, what: &str) -> TextError {
        const SHOWN: usize = 20;
        let rest = self.rest();
        let word: String = rest.split_whitespace().next().unwrap_or_default().chars().take(SHOWN).collect();
        let found = if word.is_empty() { "the end of the line".to_owned() } else { format!("\"{word}\"") };
        self.error(format!("expected {what}, found {found}"))
    }

    fn blanks(&mut self) {
        self.at = self.line.len() - self.rest().trim_start().len();
    }

    /// True if the rest of the line is empty or a comment.
    pub fn at_end(&mut self) -> bool {
        self.blanks();
        self.rest().is_empty() || self.rest().starts_with('#')
    }

    /// Skips blanks, and this text if it is next. Returns whether it was.
    pub fn eat(&mut self, text: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Skips blanks and this text.
    pub fn pass(&mut self, text: &str) -> Read {
        if self.eat(text) { Ok(()) } else { Err(self.expected(&format!("\"{text}\""))) }
    }

    /// True if a number is next, after blanks.
    pub fn at_number(&mut self) -> bool {
        self.blanks();
        self.rest().starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
    }

    /// True if a list is next, after blanks.
    pub fn at_list(&mut self) -> bool {
        self.blanks();
        self.rest().starts_with('[')
    }

    /// An integer, after blanks.
    pub fn number<T: FromStr>(&mut self, what: &str) -> Read<T> {
        self.blanks();
        let sign = usize::from(self.rest().starts_with('-'));
        let digits = self.rest()[sign..].chars().take_while(char::is_ascii_digit).count();
        let number = &self.rest()[..sign + digits];
        if digits == 0 {
            return Err(self.expected(what));
        }
        let read = number.parse().map_err(|_| self.error(format!("{number} is out of range for {what}")))?;
        self.at += number.len();
        Ok(read)
    }

    /// A word of letters, after blanks, without consuming it; empty if there is none.
    pub fn word(&mut self) -> &'l str {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len());
        &rest[..end]
    }

    /// A table's name, bare or in quotes, after blanks.
    pub fn name(&mut self, into: &mut String) -> Read {
        self.blanks();
        into.clear();
        let rest = self.rest();
        if rest.starts_with('"') {
            return self.quoted(into);
        }
        if !rest.starts_with(begins_name) {
            return Err(self.expected("a table"));
        }
        let end = rest.find(|letter: char| !continues_name(letter)).unwrap_or(rest.len());
        into.push_str(&rest[..end]);
        self.at += end;
        Ok(())
    }

    fn quoted(&mut self, into: &mut String) -> Read {
        self.at += 1;
        loop {
            let letter = self.letter()?;
            match letter {
                '"' => return Ok(()),
                '\\' => into.push(self.escape()?),
                letter => into.push(letter),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        Ok(match self.letter()? {
            'n' => '\n',
            letter @ ('"' | '\\') => letter,
            'u' => {
                let inside = self.rest().strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let (code, _) = inside.ok_or_else(|| self.expected("{HEX}"))?;
                let letter = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                let letter = letter.ok_or_else(|| self.error(format!("{code} isn't a character")))?;
                self.at += code.len() + 2;
                letter
            }
            _ => {
                self.at -= 1;
                return Err(self.expected("one of \", \\, n or u{HEX} after \\"));
            }
        })
    }

    fn letter(&mut self) -> Read<char> {
        let letter = self.rest().chars().next().ok_or_else(|| self.expected("the closing quote"))?;
        self.at += letter.len_utf8();
        Ok(letter)
    }
}
