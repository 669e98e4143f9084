//! The differences between pgbench's rules and those that a measurement needs.
//!
//! Each difference is a question answered here; nothing else compares rules.

/// The rules that a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// Those that a measurement needs.
    #[default]
    Isobench,
    /// Those of pgbench.
    Pgbench,
}

impl Rules {
    /// A retry starts with the variables' values at the start of the transaction. pgbench restores
    /// only the random state, so that an attempt sees the variables that an earlier one has set.
    pub(crate) fn restores_variables(self) -> bool {
        self == Rules::Isobench
    }

    /// The variable `attempt_id` holds a unique number for each attempt, `attempt` its number in the
    /// transaction, and `transaction` the transaction's among those of the client. In pgbench they
    /// are variables like any other.
    pub(crate) fn numbers_attempts(self) -> bool {
        self == Rules::Isobench
    }

    /// Each client chooses its scripts from its own stream, so that the number of workers doesn't
    /// change the work. In pgbench the clients of a thread share one.
    pub(crate) fn chooses_per_client(self) -> bool {
        self == Rules::Isobench
    }

    /// A statement that can't be prepared is the attempt's error. pgbench executes it nevertheless,
    /// and the error of that is the attempt's.
    pub(crate) fn heeds_failed_prepare(self) -> bool {
        self == Rules::Isobench
    }

    /// An error in a pipeline belongs to the command that caused it. pgbench, which reads the
    /// replies when the pipeline ends, blames `\endpipeline`.
    pub(crate) fn blames_command_in_pipeline(self) -> bool {
        self == Rules::Isobench
    }

    /// A worker's share of the rate is proportional to its clients. In pgbench all threads have the
    /// same share.
    pub(crate) fn shares_rate_by_clients(self) -> bool {
        self == Rules::Isobench
    }

    /// A transaction that meets a conflict after the end of the run is cut off even if its tries
    /// are exhausted. pgbench counts it nowhere.
    pub(crate) fn forgets_failures_at_the_end(self) -> bool {
        self == Rules::Pgbench
    }

    /// An attempt whose own script rolls it back isn't committed. pgbench doesn't tell the two apart.
    pub(crate) fn heeds_own_rollback(self) -> bool {
        self == Rules::Isobench
    }

    /// A connection that is lost while nothing is outstanding is noticed at once. pgbench notices
    /// when it needs the connection next, if it ever does.
    pub(crate) fn notices_loss_at_once(self) -> bool {
        self == Rules::Isobench
    }

    /// A client whose next transaction is due after the end of the run finishes at once. So the run
    /// may be shorter than asked for, and its rate higher.
    pub(crate) fn leaves_before_the_end(self) -> bool {
        self == Rules::Pgbench
    }

    /// The server's messages about the rest of a pipeline that has a COPY are shown before its
    /// client ends.
    pub(crate) fn shows_complaints_of_copy(self) -> bool {
        self == Rules::Pgbench
    }

    /// The queued part of a pipeline is sent when the script ends its client for another reason.
    /// The server executes it and, up to the last synchronisation point, even commits it. pgbench
    /// sends messages as it queues them.
    pub(crate) fn sends_what_is_queued(self) -> bool {
        self == Rules::Pgbench
    }

    /// A command whose error ends the client is counted among the failures of commands. pgbench
    /// counts only failed transactions after which the client continued.
    pub(crate) fn counts_failures_of_aborted_clients(self) -> bool {
        self == Rules::Isobench
    }

    /// A transaction whose script ends inside a block is counted as processed before its client is
    /// aborted.
    pub(crate) fn counts_unfinished_block(self) -> bool {
        self == Rules::Pgbench
    }
}
