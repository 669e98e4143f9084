//! Whose rules a run follows where pgbench's are not the ones a measurement needs.
//!
//! Every difference is a question that is answered here; nothing else asks which rules hold.

/// Whose rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// What a measurement needs.
    #[default]
    Isobench,
    /// What pgbench does.
    Pgbench,
}

impl Rules {
    /// A retry begins with the variables as they were at the transaction's begin. pgbench restores
    /// the random state only, so an attempt sees what an earlier one has set.
    pub(crate) fn restores_variables(self) -> bool {
        self == Rules::Isobench
    }

    /// The variable `attempt_id` has a number of its own for each attempt, and `attempt` its number
    /// within its transaction. To pgbench they are variables like any other.
    pub(crate) fn numbers_attempts(self) -> bool {
        self == Rules::Isobench
    }

    /// Each client draws its scripts from a stream of its own, so that the number of workers
    /// doesn't change the work. In pgbench the clients of a thread share one.
    pub(crate) fn chooses_per_client(self) -> bool {
        self == Rules::Isobench
    }

    /// A statement that can't be prepared is the attempt's error. pgbench executes it all the same,
    /// and takes the error of that for the attempt's.
    pub(crate) fn heeds_failed_prepare(self) -> bool {
        self == Rules::Isobench
    }

    /// An error in a pipeline belongs to the command that met it. pgbench, which reads the replies
    /// when the pipeline ends, blames `\endpipeline`.
    pub(crate) fn blames_command_in_pipeline(self) -> bool {
        self == Rules::Isobench
    }

    /// A worker's share of the rate is that of its clients among all. In pgbench all threads have
    /// the same share.
    pub(crate) fn shares_rate_by_clients(self) -> bool {
        self == Rules::Isobench
    }

    /// A transaction that meets a conflict when the time is over counts nowhere, even if its tries
    /// are exhausted.
    pub(crate) fn forgets_failures_at_the_end(self) -> bool {
        self == Rules::Pgbench
    }

    /// A connection that is lost while nothing is outstanding is noticed at once. pgbench finds out
    /// when it needs the connection next, if it ever does.
    pub(crate) fn notices_loss_at_once(self) -> bool {
        self == Rules::Isobench
    }

    /// A client whose next transaction is due after the end of the run leaves at once, so that the
    /// run may be shorter than asked for, and its rate higher.
    pub(crate) fn leaves_before_the_end(self) -> bool {
        self == Rules::Pgbench
    }

    /// What the server says of the rest of a pipeline that has a COPY is shown before its client
    /// ends.
    pub(crate) fn hears_complaints_of_copy(self) -> bool {
        self == Rules::Pgbench
    }

    /// What a pipeline has queued is sent when something else in the script ends its client, so
    /// that the server executes it; as far as it was synchronised, it even commits. pgbench sends
    /// it as it is queued.
    pub(crate) fn sends_what_is_queued(self) -> bool {
        self == Rules::Pgbench
    }

    /// A command whose error ends the client is counted among the failures of commands. In pgbench
    /// they are those of transactions that failed, and after which the client went on.
    pub(crate) fn counts_failures_of_aborted_clients(self) -> bool {
        self == Rules::Isobench
    }

    /// A transaction whose script ends inside a block counts as processed before its client is
    /// aborted.
    pub(crate) fn counts_unfinished_block(self) -> bool {
        self == Rules::Pgbench
    }
}
