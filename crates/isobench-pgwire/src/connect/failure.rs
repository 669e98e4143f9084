//! The problem of one connection, and whether another use of encryption may avoid it.

use super::error::ConnectProblem;

/// A problem that prevented a session over one connection.
pub(super) struct Failure {
    pub(super) problem: ConnectProblem,
    /// True if another use of encryption may help.
    pub(super) other_choice_may_help: bool,
}

impl Failure {
    /// A problem unrelated to encryption.
    pub(super) fn permanent(problem: ConnectProblem) -> Self {
        Self { problem, other_choice_may_help: false }
    }

    /// A problem that another use of encryption may avoid.
    pub(super) fn of_encryption(problem: ConnectProblem) -> Self {
        Self { problem, other_choice_may_help: true }
    }
}
