//! The formats of histories by name, and the detection of a file's format.

use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::str::FromStr;

use super::elle::{self, Notation};
use super::{FormatError, History, binary, text};

/// A format of histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// isobench's recordings.
    Binary,
    /// The human-readable text format.
    Text,
    /// The format of Elle and Jepsen.
    Edn,
    /// The format of elle-cli.
    Json,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Binary, Format::Text, Format::Edn, Format::Json];

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Binary => "binary",
            Format::Text => "text",
            Format::Edn => "edn",
            Format::Json => "json",
        }
    }

    /// The format of a file with this start; `None` if it is none of them, or only blanks.
    pub fn detect(start: &[u8]) -> Option<Format> {
        let mut rest = start;
        if rest.first() == binary::MAGIC.first() {
            return Some(Format::Binary);
        }
        loop {
            rest = rest.trim_ascii_start();
            let (first, after) = rest.split_first()?;
            let after = after.trim_ascii_start();
            match first {
                b'T' | b'd' | b'i' | b'o' => return Some(Format::Text),
                b';' | b'(' => return Some(Format::Edn),
                b'#' => return Some(if is_tag(rest) { Format::Edn } else { Format::Text }),
                b'{' => return Some(if after.first() == Some(&b':') { Format::Edn } else { Format::Json }),
                // Both formats can have histories in brackets, so the contents decide.
                b'[' if after.is_empty() || after[0] == b']' => return Some(Format::Json),
                b'[' => rest = after,
                _ => return None,
            }
        }
    }

    /// Reads a history.
    ///
    /// # Errors
    /// If the input can't be read, or isn't in this format.
    pub fn read(self, input: impl BufRead) -> Result<History, FormatError> {
        match self {
            Format::Binary => binary::read(input),
            Format::Text => text::read(input),
            Format::Edn => elle::read(Notation::Edn, input),
            Format::Json => elle::read(Notation::Json, input),
        }
    }

    /// Writes a history.
    ///
    /// # Errors
    /// If the output can't be written, or the history has something that this format can't express.
    pub fn write(self, history: &History, output: impl Write) -> Result<(), elle::Unwritable> {
        match self {
            Format::Binary if !history.initial().is_empty() => Err(elle::Unwritable::Initial),
            Format::Binary => Ok(binary::write(history, output)?),
            Format::Text => Ok(text::write(history, output)?),
            Format::Edn => elle::write(Notation::Edn, history, output),
            Format::Json => elle::write(Notation::Json, history, output),
        }
    }
}

/// True if a text that starts with `#` is a tagged, discarded or set value of EDN rather than a
/// comment.
fn is_tag(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match line.get(1) {
        Some(b'_' | b'{') => true,
        Some(letter) if letter.is_ascii_alphabetic() => {
            let end = line.iter().position(|byte| *byte == b'{' || byte.is_ascii_whitespace());
            end.is_some_and(|end| line[end] == b'{')
        }
        _ => false,
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let known = Format::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(text));
        known.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// The text isn't the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format \"{0}\"; use binary, text, edn or json")]
pub struct UnknownFormat(String);

/// Reads the start of a file, as much as is needed to detect its format; the caller has to put it
/// in front of the rest.
///
/// # Errors
/// If the input can't be read.
pub fn beginning(input: &mut impl Read) -> io::Result<Vec<u8>> {
    const ENOUGH: u64 = 4096;
    let mut start = Vec::new();
    input.take(ENOUGH).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for (start, format) in [
            (&b"\x89IBH\r\n"[..], Some(Format::Binary)),
            (b"\n T1: w x = 1", Some(Format::Text)),
            (b"# comment", Some(Format::Text)),
            (b"#comment {\nT1", Some(Format::Text)),
            (b"dropped 1", Some(Format::Text)),
            (b"initial x = 1", Some(Format::Text)),
            (b"{:type :ok}", Some(Format::Edn)),
            (b" [ { :type :ok}]", Some(Format::Edn)),
            (b"; comment", Some(Format::Edn)),
            (b"#jepsen.history.Op{:type :ok}", Some(Format::Edn)),
            (b"#_ 1 {:type :ok}", Some(Format::Edn)),
            (b"{\"type\":\"ok\"}", Some(Format::Json)),
            (b"[\n{ \"type\":\"ok\"}", Some(Format::Json)),
            (b"[]", Some(Format::Json)),
            (b"", None),
            (b" \n", None),
            (b"hello", None),
        ] {
            assert_eq!(Format::detect(start), format, "{}", String::from_utf8_lossy(start));
        }
    }

    #[test]
    fn names_are_understood() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let message = "xml".parse::<Format>().expect_err("unknown").to_string();
        assert_eq!(message, "unknown format \"xml\"; use binary, text, edn or json");
    }

    #[test]
    fn every_format_carries_a_history() {
        let history = "T1 client=0 5..6 ser: w x = 1\nT3 client=1 7..8 rr readonly deferrable: r x = 1\n\
                       T5 client=1 9..10: r x = 1";
        let history = text::parse(history).expect("parses");
        assert!(history.has_several_levels());
        for format in Format::ALL {
            let mut bytes = Vec::new();
            format.write(&history, &mut bytes).expect("writes");
            assert_eq!(Format::detect(&bytes), Some(format));
            let read = format.read(&bytes[..]).expect("reads");
            assert_eq!(text::print(&read), text::print(&history), "{format}");
        }
    }
}
