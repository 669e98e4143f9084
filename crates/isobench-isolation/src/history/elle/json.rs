//! Splits a file into its JSON objects, whether they are consecutive or in an array.
//!
//! Only braces and strings matter here; `event.rs` and serde parse the objects.

use std::io::BufRead;

use super::super::{FormatError, TextError};

/// The objects of a file.
pub(super) struct Objects<R> {
    input: R,
    line: u64,
    place: Position,
}

/// The position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first object.
    Beginning,
    /// Between consecutive objects.
    Sequence,
    /// After an array's opening bracket.
    Opened,
    /// After an object in an array.
    Element,
    /// After a comma in an array.
    Comma,
    /// After the array.
    Closed,
}

/// The state within an object.
#[derive(Default)]
struct Inside {
    depth: usize,
    string: bool,
    escaped: bool,
    /// The number of lines that ended in it.
    lines: u64,
}

impl<R: BufRead> Objects<R> {
    pub fn new(input: R) -> Objects<R> {
        Objects { input, line: 1, place: Position::Beginning }
    }

    /// Reads the next object into a buffer, and returns its first line; `None` at the end of the
    /// file.
    pub fn next(&mut self, object: &mut Vec<u8>) -> Result<Option<u64>, FormatError> {
        object.clear();
        if !self.find()? {
            return Ok(None);
        }
        let (begin, mut inside) = (self.line, Inside::default());
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Err(FormatError::Truncated(format!(
                    "it ends in the middle of the operation that starts in line {begin}"
                )));
            }
            let end = inside.end(bytes);
            let taken = end.unwrap_or(bytes.len());
            object.extend_from_slice(&bytes[..taken]);
            self.input.consume(taken);
            if end.is_some() {
                self.line += inside.lines;
                return Ok(Some(begin));
            }
        }
    }

    /// Moves to the next opening brace; returns false at the end of the file.
    fn find(&mut self) -> Result<bool, FormatError> {
        loop {
            let bytes = self.input.fill_buf()?;
            let Some(&first) = bytes.first() else {
                return match self.place {
                    Position::Beginning | Position::Sequence | Position::Closed => Ok(false),
                    Position::Opened | Position::Element | Position::Comma => Err(FormatError::Truncated(
                        format!("it ends in line {}, and the array isn't closed", self.line),
                    )),
                };
            };
            self.place = match (first, self.place) {
                (b'{', Position::Beginning | Position::Sequence) => {
                    self.place = Position::Sequence;
                    return Ok(true);
                }
                (b'{', Position::Opened | Position::Comma) => {
                    self.place = Position::Element;
                    return Ok(true);
                }
                (b' ' | b'\t' | b'\r' | b'\n', place) => {
                    self.line += u64::from(first == b'\n');
                    place
                }
                (b'[', Position::Beginning) => Position::Opened,
                (b',', Position::Element) => Position::Comma,
                (b']', Position::Opened | Position::Element) => Position::Closed,
                _ => return Err(self.unexpected(first)),
            };
            self.input.consume(1);
        }
    }

    fn unexpected(&self, found: u8) -> FormatError {
        let expected = match self.place {
            Position::Beginning | Position::Sequence | Position::Opened | Position::Comma => {
                "an operation, {\"type\": …}"
            }
            Position::Element => "\",\" or \"]\"",
            Position::Closed => "the end of the file after \"]\"",
        };
        let problem = format!("expected {expected}, found \"{}\"", char::from(found).escape_default());
        FormatError::Text(TextError { line: self.line, column: 0, problem })
    }
}

impl Inside {
    /// The end of the object in these bytes, if it is there.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (place, byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.string => self.escaped = true,
                b'"' => self.string = !self.string,
                b'\n' => self.lines += 1,
                _ if self.string => {}
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(place + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
