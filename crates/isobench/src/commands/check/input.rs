//! Opens a history: detects its format, and reads it as a whole or in windows.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use isobench_isolation::History;
use isobench_isolation::history::binary::{self, Windows};
use isobench_isolation::history::{Format, FormatError, beginning};

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

/// The part of it that is in memory.
pub enum Opened {
    Whole(History),
    Windows(Box<Windows<Box<dyn Read>>>),
}

impl Input {
    /// Opens a file, or standard input.
    ///
    /// # Errors
    /// It can't be read, or isn't a history.
    pub fn open(path: &Path, options: &CheckOptions) -> Outcome<Input> {
        let name = shown(path);
        let failure = |error: FormatError| {
            let hint = match error {
                FormatError::Truncated(_) | FormatError::Damaged(_) if !options.partial => {
                    "; of a recording, --partial checks what comes before"
                }
                _ => "",
            };
            Failure::setup(format!("{name}: {error}{hint}"))
        };
        let mut input = reader(path).map_err(|error| failure(error.into()))?;
        let start = beginning(&mut input).map_err(|error| failure(error.into()))?;
        let format = find(&start, options.format).map_err(|why| Failure::setup(format!("{name}: {why}")))?;
        let input = Cursor::new(start).chain(input);
        let (opened, problem) = match options.window {
            Some(size) if format == Format::Binary => {
                let windows = windows(path, input, size, options.partial).map_err(failure)?;
                let problem = windows.problem().map(ToString::to_string);
                (Opened::Windows(Box::new(windows)), problem)
            }
            _ => {
                let (history, problem) = whole(format, input, options.partial).map_err(failure)?;
                (Opened::Whole(history), problem)
            }
        };
        Ok(Input { name, format, opened, problem })
    }
}

fn reader(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if is_stream(path) { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) })
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

/// Reads in windows, which takes two passes: over the file, or over a copy of the input if it is a
/// pipe.
fn windows(
    path: &Path,
    mut input: impl Read,
    size: usize,
    partial: bool,
) -> Result<Windows<Box<dyn Read>>, FormatError> {
    if !is_stream(path) && fs::metadata(path)?.is_file() {
        let open = || -> Result<Box<dyn Read>, FormatError> {
            Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(path)?)))
        };
        return Windows::new(open, size, partial);
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let bytes: Arc<[u8]> = bytes.into();
    let open = || -> Result<Box<dyn Read>, FormatError> { Ok(Box::new(Cursor::new(Arc::clone(&bytes)))) };
    Windows::new(open, size, partial)
}
