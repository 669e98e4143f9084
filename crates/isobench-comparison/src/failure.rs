//! Reasons why a measurement, or a command, ends without success.

/// What made a command fail, as a sentence for the user, sorted by exit status.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing was measured: wrong options or files, no server, no tables. Status 1 (as pgbench's).
    #[error("{0}")]
    Setup(String),
    /// The measurement is incomplete: clients were aborted, the server was lost, the run was
    /// interrupted. What was measured has been reported. Status 2 (as pgbench's).
    #[error("{0}")]
    Incomplete(String),
    /// The measurement is complete, but a promise was broken, or one result is worse than another.
    /// Status 3.
    #[error("{0}")]
    Broken(String),
    /// The measurement is complete, but what its history proves isn't known: the history
    /// contradicts itself, isn't whole, or isn't there. Status 1.
    #[error("{0}")]
    Withheld(String),
    /// The measurement is complete, but its result could not be written. Status 1.
    #[error("{0}")]
    Output(String),
}

impl Failure {
    /// A verdict that was withheld for this reason.
    pub fn withheld(reason: &str) -> Failure {
        Failure::Withheld(format!("the verdict is withheld: {reason}"))
    }

    /// A failure before anything was measured.
    #[expect(clippy::needless_pass_by_value, reason = "so that it can be handed to map_err")]
    pub fn setup(problem: impl ToString) -> Failure {
        Failure::Setup(problem.to_string())
    }
}

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;
