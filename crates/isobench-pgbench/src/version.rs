//! The versions of pgbench that can be imitated (`--compat`), and every difference between them, with its reason.
//!
//! No other file compares versions: it asks a question that is answered here.

/// A major version of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18, what the drop-in is unless told otherwise.
    #[default]
    V18,
    /// PostgreSQL 19.
    V19,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Version; 5] = [Version::V15, Version::V16, Version::V17, Version::V18, Version::V19];

    /// The number that `--compat` takes.
    pub const fn number(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V16 => 16,
            Version::V17 => 17,
            Version::V18 => 18,
            Version::V19 => 19,
        }
    }

    /// The version with this number.
    pub fn from_number(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.number().to_string() == text)
    }

    /// `-d` takes the name of the database; before, it was the short form of `--debug`. Changed in 17, so that the
    /// option means the same in all of PostgreSQL's programs.
    pub fn dbname_option(self) -> bool {
        self >= Version::V17
    }

    /// `--exit-on-abort` exists since 17.
    pub fn exit_on_abort(self) -> bool {
        self >= Version::V17
    }

    /// `--continue-on-error` exists since 19, and with it failures of another kind than conflicts.
    pub fn continue_on_error(self) -> bool {
        self >= Version::V19
    }
}
