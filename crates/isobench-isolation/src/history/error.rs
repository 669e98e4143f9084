//! Errors of reading a history.

use std::fmt;
use std::io;

/// The reason that a history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file or stream could not be read.
    #[error("could not read it: {0}")]
    Io(#[from] io::Error),
    /// The file isn't in this format.
    #[error("{0}")]
    Foreign(String),
    /// The file ends too early, because its writer was interrupted. The part before the error is
    /// valid.
    #[error("the history is truncated: {0}")]
    Truncated(String),
    /// The file was changed after it was written, or is invalid. The part before the error is
    /// valid.
    #[error("the history is damaged: {0}")]
    Damaged(String),
    /// A text doesn't match its format.
    #[error("{0}")]
    Text(TextError),
}

impl FormatError {
    /// True if the file is a history, and the part before the error can be used.
    pub fn leaves_a_part(&self) -> bool {
        matches!(self, FormatError::Truncated(_) | FormatError::Damaged(_))
    }
}

/// An error in a text, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// The column, in characters, from 1; 0 for the line as a whole.
    pub column: u64,
    /// The problem, and the expected input.
    pub problem: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 if self.line == 0 => f.write_str(&self.problem),
            0 => write!(f, "line {}: {}", self.line, self.problem),
            column => write!(f, "line {}, column {column}: {}", self.line, self.problem),
        }
    }
}
