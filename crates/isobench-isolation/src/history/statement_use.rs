//! What a script does with what a statement reads.

/// What a script does with what one of its statements reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct StatementUse {
    /// The statement may write.
    pub writes: bool,
    /// It writes only where a column still has the value that was read before, so that a row that it
    /// doesn't find is a refusal, not a loss.
    pub guarded: bool,
    /// No statement of its transaction writes: the rows are the transaction's product.
    pub product: bool,
    /// Its result flows into a statement of the same transaction that may write and isn't observed.
    pub flows_unseen: bool,
    /// The observed statements of the same transaction that write, and that its result flows into.
    pub into: Vec<Flow>,
    /// The observed statements that write and that its result flows into, in later transactions.
    pub carried: Vec<Flow>,
    /// The numbers of the columns that it mentions; `None` if its result may depend on any.
    pub uses: Option<Vec<u16>>,
    /// The numbers of the columns of a row that it changes; `None` if it may change any. Columns of
    /// different tables may have the same number.
    pub changes: Option<Vec<u16>>,
    /// The columns among these that it writes back as they were read, and those whose values are only
    /// written back.
    pub unchanged: Vec<Unchanged>,
}

/// A column that a statement could be without, because its value stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    /// Its number.
    pub column: u16,
    /// Its name.
    pub name: String,
}

/// A flow from what a statement reads into what another one writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The number of the statement that writes.
    pub statement: u16,
    /// How the one depends on the other.
    pub how: Dependence,
}

/// How what is written depends on what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependence {
    /// What was read decides whether, or which rows, the statement writes.
    Decision,
    /// What was read is part of what the statement writes.
    Value,
}

impl StatementUse {
    /// True if its result flows into anything that its transaction may write.
    pub(crate) fn flows(&self) -> bool {
        self.flows_unseen || !self.into.is_empty()
    }
}
