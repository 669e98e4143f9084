//! Reasons why a measurement, or a command, ends without success.

/// The reason why a command failed, as a sentence for the user, by exit status.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing was measured: wrong options or files, no server, no tables. Status 1 (as pgbench's).
    #[error("{0}")]
    Setup(String),
    /// The measurement is incomplete: clients were aborted, the server was lost, or the run was
    /// interrupted. The measured part has been reported. Status 2 (as pgbench's).
    #[error("{0}")]
    Incomplete(String),
    /// The measurement is complete, but a promise was broken, or one result is worse than another.
    /// Status 3.
    #[error("{0}")]
    Broken(String),
    /// The measurement is complete, but doesn't keep a threshold that was set for it. Status 4.
    #[error("{0}")]
    Unmet(String),
    /// The measurement is complete, but its history allows no verdict: it contradicts itself, is
    /// incomplete, or is missing. Status 1.
    #[error("{0}")]
    Withheld(String),
    /// The measurement is complete, but its result could not be written. Status 1.
    #[error("{0}")]
    Output(String),
}

impl Failure {
    /// Returns the failure of a verdict that was withheld for this reason.
    pub fn withheld(reason: &str) -> Failure {
        Failure::Withheld(format!("the verdict is withheld: {reason}"))
    }

    /// Returns the failure of a command before any measurement.
    #[expect(clippy::needless_pass_by_value, reason = "so that it can be handed to map_err")]
    pub fn setup(problem: impl ToString) -> Failure {
        Failure::Setup(problem.to_string())
    }
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;
