//! Positions of commands, for errors.

use crate::error::{ParseError, ParseProblem};

/// The position of a command, for errors.
#[derive(Copy, Clone)]
pub(super) struct Place<'a> {
    pub file: &'a str,
    pub line: u32,
}

impl Place<'_> {
    pub fn error(self, problem: ParseProblem) -> ParseError {
        ParseError {
            file: self.file.to_owned(),
            line: self.line,
            column: None,
            source: String::new(),
            problem,
        }
    }
}
