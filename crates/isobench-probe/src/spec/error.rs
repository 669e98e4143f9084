//! What can be wrong with a test specification.

use std::fmt;

/// A place in the text: line and column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// The text is no test specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{place}: {problem}")]
pub struct SpecError {
    /// The file's name.
    pub file: String,
    /// Where.
    pub place: Place,
    /// Why.
    pub problem: SpecProblem,
}

/// Why a text is no test specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecProblem {
    /// A character that begins nothing.
    #[error("unexpected character \"{0}\"; SQL stands between braces")]
    Character(char),
    /// A `{` without its `}`.
    #[error("this SQL block has no end; close it with \"}}\"")]
    UnterminatedSql,
    /// A `"` without its partner on the same line.
    #[error("this quoted name has no end on its line; close it with a double quote")]
    UnterminatedName,
    /// A word that doesn't fit here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What fits.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A number that is too large, or zero where it must not be.
    #[error("{0} is no number of notices; use 1 to 1000000")]
    Number(String),
    /// Two steps have one name.
    #[error("step \"{0}\" exists already; names of steps are unique in the whole file")]
    DuplicateStep(String),
    /// A permutation names a step that doesn't exist.
    #[error("there is no step \"{0}\"")]
    UnknownStep(String),
    /// A marker names a step that doesn't exist.
    #[error("there is no step \"{blocker}\", which \"{step}\" is to wait for")]
    UnknownBlocker {
        /// The missing one.
        blocker: String,
        /// Whose marker it is.
        step: String,
    },
    /// A marker names a step that the permutation doesn't launch.
    #[error("this permutation has no step \"{blocker}\", which \"{step}\" is to wait for")]
    AbsentBlocker {
        /// The missing one.
        blocker: String,
        /// Whose marker it is.
        step: String,
    },
    /// A marker names a step of the same session.
    #[error("\"{step}\" can't wait for \"{blocker}\" of its own session")]
    OwnSession {
        /// What it is to wait for.
        blocker: String,
        /// Whose marker it is.
        step: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
