//! Converts the maps of an EDN file to JSON objects, whether they are consecutive or in a vector or
//! list.
//!
//! Keywords, symbols, characters and strings become strings; lists, vectors and sets become arrays;
//! tags are dropped. No crate is used, because the existing ones build the values of whole files in
//! memory. Source: <https://github.com/edn-format/edn>.

use std::io::BufRead;

use super::super::{FormatError, TextError};

/// The maps of a file.
pub(super) struct Maps<R> {
    input: R,
    line: u64,
    place: Position,
    word: Vec<u8>,
}

/// The position in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first map.
    Beginning,
    /// Between consecutive maps.
    Sequence,
    /// In the top-level vector or list, which this byte closes.
    Inside(u8),
    /// After the vector or list.
    Closed,
}

/// The start of a value, or the end of a collection; already consumed when it is returned.
#[derive(Clone, Copy)]
enum Start {
    Map,
    /// A list, vector or set, and its closing byte.
    Array(u8),
    String,
    Character,
    /// A word, with its first byte.
    Word(u8),
    Close(u8),
    End,
}

/// The maximum nesting of values: much deeper than in any history, and safe for the stack.
const DEEPEST: u32 = 100;

/// The bytes that end a word.
const ENDS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b" \t\r\n,;()[]{}\"";
    let mut index = 0;
    while index < ends.len() {
        table[ends[index] as usize] = true;
        index += 1;
    }
    table
};

impl<R: BufRead> Maps<R> {
    pub fn new(input: R) -> Maps<R> {
        Maps { input, line: 1, place: Position::Beginning, word: Vec::new() }
    }

    /// Writes the next map to a buffer, as JSON, and returns its first line; `None` at the end of
    /// the file.
    pub fn next(&mut self, object: &mut Vec<u8>) -> Result<Option<u64>, FormatError> {
        object.clear();
        loop {
            self.place = match (self.start(0)?, self.place) {
                (Start::Map, Position::Beginning | Position::Sequence | Position::Inside(_)) => {
                    let line = self.line;
                    self.map(object, 1)?;
                    if self.place == Position::Beginning {
                        self.place = Position::Sequence;
                    }
                    return Ok(Some(line));
                }
                (Start::Array(close), Position::Beginning) => Position::Inside(close),
                (Start::Close(byte), Position::Inside(close)) if byte == close => Position::Closed,
                (Start::End, Position::Inside(_)) => return Err(self.truncated()),
                (Start::End, _) => return Ok(None),
                (_, Position::Closed) => {
                    return Err(self.error("expected the end of the file after the list of operations"));
                }
                _ => return Err(self.error("expected an operation, {:type …}, found something else")),
            };
        }
    }

    /// Skips blanks, comments, discarded values and tags, and reads the start of the next value.
    fn start(&mut self, depth: u32) -> Result<Start, FormatError> {
        loop {
            let Some(first) = self.take()? else { return Ok(Start::End) };
            return Ok(match first {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => continue,
                b';' => {
                    while self.take()?.is_some_and(|byte| byte != b'\n') {}
                    continue;
                }
                b'#' => match self.peek()? {
                    Some(b'{') => {
                        self.take()?;
                        Start::Array(b'}')
                    }
                    Some(b'_') => {
                        self.take()?;
                        self.value(&mut Vec::new(), depth + 1)?;
                        continue;
                    }
                    _ => {
                        self.word(b'#')?;
                        continue;
                    }
                },
                b'{' => Start::Map,
                b'[' => Start::Array(b']'),
                b'(' => Start::Array(b')'),
                b'"' => Start::String,
                b'\\' => Start::Character,
                b'}' | b']' | b')' => Start::Close(first),
                _ => Start::Word(first),
            });
        }
    }

    /// Converts the next value.
    fn value(&mut self, out: &mut Vec<u8>, depth: u32) -> Result<(), FormatError> {
        self.check_depth(depth)?;
        let start = self.start(depth)?;
        self.value_from(start, out, depth)
    }

    fn check_depth(&self, depth: u32) -> Result<(), FormatError> {
        if depth > DEEPEST { Err(self.error("values are nested more than a hundred deep")) } else { Ok(()) }
    }

    /// Converts the value with this start.
    fn value_from(&mut self, start: Start, out: &mut Vec<u8>, depth: u32) -> Result<(), FormatError> {
        self.check_depth(depth)?;
        match start {
            Start::Map => self.map(out, depth + 1),
            Start::Array(close) => self.array(close, out, depth + 1),
            Start::String => self.string(out),
            Start::Character => {
                let first = self.take()?.ok_or_else(|| self.truncated())?;
                self.word(first)?;
                quote(&self.word, out);
                Ok(())
            }
            Start::Word(first) => {
                self.word(first)?;
                atom(&self.word, out);
                Ok(())
            }
            Start::Close(byte) => {
                let problem = format!("\"{}\" is unmatched, or a value is missing", char::from(byte));
                Err(self.error(&problem))
            }
            Start::End => Err(self.truncated()),
        }
    }

    fn array(&mut self, close: u8, out: &mut Vec<u8>, depth: u32) -> Result<(), FormatError> {
        out.push(b'[');
        let mut comma = false;
        loop {
            match self.start(depth)? {
                Start::Close(byte) if byte == close => break,
                start => {
                    if comma {
                        out.push(b',');
                    }
                    self.value_from(start, out, depth)?;
                    comma = true;
                }
            }
        }
        out.push(b']');
        Ok(())
    }

    fn map(&mut self, out: &mut Vec<u8>, depth: u32) -> Result<(), FormatError> {
        out.push(b'{');
        let mut comma = false;
        loop {
            match self.start(depth)? {
                Start::Close(b'}') => break,
                start => {
                    if comma {
                        out.push(b',');
                    }
                    let place = out.len();
                    self.value_from(start, out, depth)?;
                    make_key(place, out);
                    out.push(b':');
                    self.value(out, depth)?;
                    comma = true;
                }
            }
        }
        out.push(b'}');
        Ok(())
    }

    /// Converts a string; its escapes are the same as in JSON.
    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        out.push(b'"');
        loop {
            let byte = self.take()?.ok_or_else(|| self.truncated())?;
            match byte {
                b'\\' => {
                    let next = self.take()?.ok_or_else(|| self.truncated())?;
                    out.extend([byte, next]);
                }
                b'"' => {
                    out.push(byte);
                    return Ok(());
                }
                byte => escape(byte, out),
            }
        }
    }

    /// Reads a word whose first byte has been consumed.
    fn word(&mut self, first: u8) -> Result<(), FormatError> {
        self.word.clear();
        self.word.push(first);
        loop {
            let bytes = self.input.fill_buf()?;
            let end = bytes.iter().position(|byte| ENDS_WORD[usize::from(*byte)]);
            let taken = end.unwrap_or(bytes.len());
            self.word.extend_from_slice(&bytes[..taken]);
            self.input.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok(());
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, FormatError> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn take(&mut self) -> Result<Option<u8>, FormatError> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.line += u64::from(byte == b'\n');
            self.input.consume(1);
        }
        Ok(byte)
    }

    fn error(&self, problem: &str) -> FormatError {
        FormatError::Text(TextError { line: self.line, column: 0, problem: problem.to_owned() })
    }

    fn truncated(&self) -> FormatError {
        FormatError::Truncated(format!("it ends in the middle of a value, in line {}", self.line))
    }
}

/// Converts a word to the equivalent JSON value.
fn atom(word: &[u8], out: &mut Vec<u8>) {
    match word {
        b"nil" => out.extend(b"null"),
        b"true" | b"false" => out.extend(word),
        [b':', name @ ..] => quote(name, out),
        [b'0'..=b'9', ..] | [b'-' | b'+', b'0'..=b'9', ..] => {
            let digits = word.strip_prefix(b"+").unwrap_or(word);
            // Big integers and exact decimals end with a letter.
            out.extend(digits.strip_suffix(b"N").or(digits.strip_suffix(b"M")).unwrap_or(digits));
        }
        symbol => quote(symbol, out),
    }
}

/// Turns the value written last into a string, because keys in JSON are strings. The fields of
/// operations have keywords as keys, so other keys needn't be distinguishable.
fn make_key(place: usize, out: &mut Vec<u8>) {
    if out[place] == b'"' {
        return;
    }
    let value = out.split_off(place);
    quote(if value[0] == b'[' || value[0] == b'{' { b"" } else { &value }, out);
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if text.iter().all(u8::is_ascii_alphanumeric) {
        out.extend_from_slice(text);
        out.push(b'"');
        return;
    }
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            byte => escape(*byte, out),
        }
    }
    out.push(b'"');
}

/// Writes a byte of a string; JSON doesn't allow control characters in strings.
fn escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        0..0x20 => out.extend(format!("\\u{byte:04x}").bytes()),
        byte => out.push(byte),
    }
}
