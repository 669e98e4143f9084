//! Cuts a file into its JSON objects, whether they stand one after the other or in an array.
//!
//! What an object means is `event.rs`'s business, and whether it is right serde's: here only braces
//! and strings matter.

use std::io::BufRead;

use super::super::{FormatError, TextError};

/// The objects of a file.
pub(super) struct Objects<R> {
    input: R,
    line: u64,
    place: Place,
}

/// Where in a file something is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing was found yet.
    Beginning,
    /// Between objects that stand one after the other.
    Sequence,
    /// Behind the bracket of an array.
    Opened,
    /// Behind an object of an array.
    Element,
    /// Behind a comma of an array.
    Comma,
    /// Behind the array.
    Closed,
}

/// What is known of an object while it is read.
#[derive(Default)]
struct Inside {
    depth: usize,
    string: bool,
    escaped: bool,
    /// How many ended in it.
    lines: u64,
}

impl<R: BufRead> Objects<R> {
    pub fn new(input: R) -> Objects<R> {
        Objects { input, line: 1, place: Place::Beginning }
    }

    /// Puts the next object into a buffer, and returns the line where it begins; `None` at the end
    /// of the file.
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
                    "it ends in the middle of the operation that begins in line {begin}"
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

    /// Goes to the next opening brace; false at the end of the file.
    fn find(&mut self) -> Result<bool, FormatError> {
        loop {
            let bytes = self.input.fill_buf()?;
            let Some(&first) = bytes.first() else {
                return match self.place {
                    Place::Beginning | Place::Sequence | Place::Closed => Ok(false),
                    Place::Opened | Place::Element | Place::Comma => Err(FormatError::Truncated(format!(
                        "it ends in line {}, and the array isn't closed",
                        self.line
                    ))),
                };
            };
            self.place = match (first, self.place) {
                (b'{', Place::Beginning | Place::Sequence) => {
                    self.place = Place::Sequence;
                    return Ok(true);
                }
                (b'{', Place::Opened | Place::Comma) => {
                    self.place = Place::Element;
                    return Ok(true);
                }
                (b' ' | b'\t' | b'\r' | b'\n', place) => {
                    self.line += u64::from(first == b'\n');
                    place
                }
                (b'[', Place::Beginning) => Place::Opened,
                (b',', Place::Element) => Place::Comma,
                (b']', Place::Opened | Place::Element) => Place::Closed,
                _ => return Err(self.unexpected(first)),
            };
            self.input.consume(1);
        }
    }

    fn unexpected(&self, found: u8) -> FormatError {
        let expected = match self.place {
            Place::Beginning | Place::Sequence | Place::Opened | Place::Comma => {
                "an operation, {\"type\": …}"
            }
            Place::Element => "\",\" or \"]\"",
            Place::Closed => "the end of the file after \"]\"",
        };
        let problem = format!("expected {expected}, found \"{}\"", char::from(found).escape_default());
        FormatError::Text(TextError { line: self.line, column: 0, problem })
    }
}

impl Inside {
    /// Where the object ends in these bytes, if it does.
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
