//! Opens a history: detects its format, and reads it unless it is a recording to be checked while
//! it is read.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use isobench_isolation::History;
use isobench_isolation::history::binary;
use isobench_isolation::history::{Format, FormatError, beginning};
use isobench_trust::open_to_show;

use crate::options::{CheckOptions, Found};
use crate::output::{is_stream, shown};
use isobench_comparison::{Failure, Outcome};

/// An open history.
pub struct Input {
    /// Its name in messages.
    pub name: String,
    pub format: Format,
    pub opened: Opened,
    /// The reason why it is incomplete, if it is.
    pub problem: Option<String>,
}

/// A history in memory, or a recording of which only the start has been read.
pub enum Opened {
    Whole(History),
    Recording(Box<dyn Read>),
}

impl Input {
    /// Opens a file, or standard input.
    ///
    /// # Errors
    /// It can't be read, or isn't a history.
    pub fn open(path: &Path, options: &CheckOptions) -> Outcome<Input> {
        let name = shown(path);
        let failure = |error: FormatError| failure(&name, &error, options);
        let mut input = reader(path).map_err(|error| failure(error.into()))?;
        let start = beginning(&mut input).map_err(|error| failure(error.into()))?;
        let format = find(&start, options.format).map_err(|why| Failure::setup(format!("{name}: {why}")))?;
        let input = Cursor::new(start).chain(input);
        let (opened, problem) = if format == Format::Binary && options.convert.is_none() {
            (Opened::Recording(Box::new(BufReader::with_capacity(1 << 16, input))), None)
        } else {
            let (history, problem) = whole(format, input, options.partial).map_err(failure)?;
            (Opened::Whole(history), problem)
        };
        Ok(Input { name, format, opened, problem })
    }
}

/// The failure to read a history.
pub fn failure(name: &str, error: &FormatError, options: &CheckOptions) -> Failure {
    let hint = match error {
        FormatError::Truncated(_) | FormatError::Damaged(_) if !options.partial => {
            "; of a recording, --partial checks what comes before"
        }
        _ => "",
    };
    Failure::setup(format!("{name}: {error}{hint}"))
}

fn reader(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if is_stream(path) { Box::new(io::stdin().lock()) } else { Box::new(open_to_show(path)?) })
}

fn find(start: &[u8], asked: Option<Found>) -> Result<Format, &'static str> {
    if let Some(Found::Given(format)) = asked {
        return Ok(format);
    }
    if start.trim_ascii().is_empty() {
        return Err("there is nothing in it, so it isn't a history");
    }
    Format::detect(start).ok_or(
        "this isn't a history: it begins neither like a recording of isobench, nor like text, EDN or JSON (--format \
         says which it is)",
    )
}

fn whole(format: Format, input: impl Read, partial: bool) -> Result<(History, Option<String>), FormatError> {
    let input = BufReader::with_capacity(1 << 16, input);
    if format == Format::Binary && partial {
        let (history, problem) = binary::read_lenient(input)?;
        return Ok((history, problem.map(|problem| problem.to_string())));
    }
    Ok((format.read(input)?, None))
}
