//! Why a file is no history, or only a part of one.

use std::fmt;
use std::io;

/// Why a history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file or stream could not be read.
    #[error("could not read it: {0}")]
    Io(#[from] io::Error),
    /// The file isn't in this format at all.
    #[error("{0}")]
    Foreign(String),
    /// The file ends before it should: whoever wrote it was interrupted. What comes before is
    /// whole.
    #[error("the history is truncated: {0}")]
    Truncated(String),
    /// Bytes were changed after they had been written, or were never right. What comes before is
    /// whole.
    #[error("the history is damaged: {0}")]
    Damaged(String),
    /// A text is not as its format has it.
    #[error("{0}")]
    Text(TextError),
}

impl FormatError {
    /// True if the file is a history, and what comes before the error can be used.
    pub fn leaves_a_part(&self) -> bool {
        matches!(self, FormatError::Truncated(_) | FormatError::Damaged(_))
    }
}

/// A mistake in a text, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1; 0 if it is the file as a whole.
    pub line: u64,
    /// The column in it, in characters, from 1; 0 if it is the line as a whole.
    pub column: u64,
    /// What is wrong, and what was expected.
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
