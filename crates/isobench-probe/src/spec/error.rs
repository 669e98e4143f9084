//! Errors in test specifications.

use std::fmt;

/// A position in the text: line and column, both from 1; columns are counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// An error in a test specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{position}: {problem}")]
pub struct SpecError {
    /// The file's name.
    pub file: String,
    /// The position.
    pub position: Position,
    /// The problem.
    pub problem: SpecProblem,
}

/// A problem in a test specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecProblem {
    /// A character that can't start a token.
    #[error("unexpected character \"{0}\"; SQL must be in braces")]
    Character(char),
    /// A `{` without `}`.
    #[error("this SQL block has no end; close it with \"}}\"")]
    UnterminatedSql,
    /// A `"` without another one on the same line.
    #[error("this quoted name has no end on its line; close it with a double quote")]
    UnterminatedName,
    /// A word that isn't valid here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The valid words.
        expected: &'static str,
        /// The word found.
        found: String,
    },
    /// A number that is too large, or an invalid zero.
    #[error("{0} isn't a valid number of notices; use 1 to 1000000")]
    Number(String),
    /// Two steps have the same name.
    #[error("step \"{0}\" already exists; step names must be unique in the file")]
    DuplicateStep(String),
    /// A permutation names a step that doesn't exist.
    #[error("there is no step \"{0}\"")]
    UnknownStep(String),
    /// A marker names a step that doesn't exist.
    #[error("there is no step \"{blocker}\", which \"{step}\" waits for")]
    UnknownBlocker {
        /// The missing step.
        blocker: String,
        /// The step with the marker.
        step: String,
    },
    /// A marker names a step that the permutation doesn't launch.
    #[error("this permutation has no step \"{blocker}\", which \"{step}\" waits for")]
    AbsentBlocker {
        /// The missing step.
        blocker: String,
        /// The step with the marker.
        step: String,
    },
    /// A marker names a step of the same session.
    #[error("\"{step}\" can't wait for \"{blocker}\" of its own session")]
    OwnSession {
        /// The step to wait for.
        blocker: String,
        /// The step with the marker.
        step: String,
    },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
