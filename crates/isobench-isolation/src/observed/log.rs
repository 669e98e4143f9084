//! The log as bytes: what one attempt after the other was seen to do.
//!
//! An attempt is encoded while the answers come in, so an operation is a few bytes appended to a
//! buffer that is reused. The bytes never leave the process; the format isn't documented elsewhere.
//! Numbers have 7 bits per byte (LEB128), signed ones are zigzag-coded.

use crate::history::binary::decode::{Bytes, Problem};
use crate::history::binary::encode::number;
use crate::history::binary::{unzigzag, zigzag};
use crate::history::{FormatError, Key, Mode, Transaction, TransactionOutcome};

use super::predicate::NULL;
use super::snapshots::TakenSnapshot;
use super::{KeyForm, ObservedDescription, ValueForm};

/// The version that a write replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// There was one, and its writer wasn't shown.
    Unknown,
    /// There was none: the row was inserted.
    Nothing,
    /// That of this (sub)transaction.
    By(u32),
}

/// What a statement of an attempt did, as far as its result showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedOperation<'o> {
    /// Read the version that this (sub)transaction had written.
    Read {
        /// The row.
        key: Key,
        /// The number of the writing (sub)transaction.
        writer: u32,
        /// The values of the table's kept columns; empty if they aren't known.
        columns: &'o [i64],
    },
    /// Wrote a version.
    Write {
        /// The row.
        key: Key,
        /// The number of the (sub)transaction that wrote it, the attempt's own.
        writer: u32,
        /// What it replaced.
        replaced: Replaced,
        /// As for a read.
        columns: &'o [i64],
    },
    /// Deleted the version that this (sub)transaction had written.
    Delete {
        /// The row.
        key: Key,
        /// The writer of the version deleted.
        deleted: u32,
    },
    /// Searched a table. All rows found are also operations of the same attempt.
    Search {
        /// The table.
        table: u16,
        /// The number of the condition.
        predicate: u16,
        /// The key, if only a row with this key could match.
        key: Option<i64>,
        /// The operands of the condition.
        operands: &'o [i64],
        /// The keys of the rows found.
        found: &'o [i64],
    },
    /// Everything before had been answered, and COMMIT hadn't been sent (instants in ns on the
    /// clock of [`Transaction::begin`]). Both are the same instant, unless the clock may be wrong.
    Answered {
        /// By this instant everything had been answered.
        at: u64,
        /// At this instant COMMIT hadn't been sent.
        unsent: u64,
    },
    /// May have written rows of the table that weren't shown.
    Unseen {
        /// The table.
        table: u16,
    },
    /// Searched a table, and what that missed isn't known.
    Unsearched {
        /// The table.
        table: u16,
    },
    /// Is of a script whose transactions are asked for their snapshots.
    Script {
        /// The number of the script.
        script: u16,
        /// The snapshot, if the transaction has one for all of its statements and was asked for it.
        snapshot: Option<TakenSnapshot<'o>>,
    },
}

mod kind {
    pub const READ: u8 = 0;
    pub const WRITE: u8 = 1;
    pub const INSERT: u8 = 2;
    pub const REPLACE: u8 = 3;
    pub const DELETE: u8 = 4;
    pub const SEARCH: u8 = 5;
    pub const SEARCH_KEY: u8 = 6;
    pub const ANSWERED: u8 = 7;
    pub const UNSEEN: u8 = 8;
    pub const ANSWERED_WITHIN: u8 = 9;
    pub const UNSEARCHED: u8 = 10;
    pub const SCRIPT: u8 = 11;
    pub const SNAPSHOT: u8 = 12;
}

/// The operations of one attempt so far, each with the number of its statement.
#[derive(Debug, Clone, Default)]
pub struct ObservedDraft {
    bytes: Vec<u8>,
    operations: u64,
}

impl ObservedDraft {
    /// Removes all operations.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.operations = 0;
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Moves all operations of another draft to the end of this one.
    pub fn append(&mut self, other: &mut ObservedDraft) {
        self.bytes.append(&mut other.bytes);
        self.operations += std::mem::take(&mut other.operations);
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an operation of a statement.
    pub fn push(&mut self, operation: ObservedOperation<'_>, statement: u16) {
        self.operations += 1;
        let bytes = &mut self.bytes;
        let row = |bytes: &mut Vec<u8>, code, Key { table, id }: Key, writer: u32| {
            bytes.push(code);
            number(bytes, u64::from(statement));
            number(bytes, u64::from(table));
            number(bytes, zigzag(id));
            number(bytes, u64::from(writer));
        };
        match operation {
            ObservedOperation::Read { key, writer, columns } => {
                row(bytes, kind::READ, key, writer);
                values(bytes, columns);
            }
            ObservedOperation::Write { key, writer, replaced, columns } => {
                let code = match replaced {
                    Replaced::Unknown => kind::WRITE,
                    Replaced::Nothing => kind::INSERT,
                    Replaced::By(_) => kind::REPLACE,
                };
                row(bytes, code, key, writer);
                if let Replaced::By(replaced) = replaced {
                    number(bytes, u64::from(replaced));
                }
                values(bytes, columns);
            }
            ObservedOperation::Delete { key, deleted } => row(bytes, kind::DELETE, key, deleted),
            ObservedOperation::Search { table, predicate, key, operands, found } => {
                bytes.push(if key.is_some() { kind::SEARCH_KEY } else { kind::SEARCH });
                number(bytes, u64::from(statement));
                number(bytes, u64::from(table));
                number(bytes, u64::from(predicate));
                if let Some(key) = key {
                    number(bytes, zigzag(key));
                }
                values(bytes, operands);
                values(bytes, found);
            }
            ObservedOperation::Answered { at, unsent } if at == unsent => {
                bytes.push(kind::ANSWERED);
                number(bytes, at);
            }
            ObservedOperation::Answered { at, unsent } => {
                bytes.push(kind::ANSWERED_WITHIN);
                number(bytes, at);
                number(bytes, unsent);
            }
            ObservedOperation::Unseen { table } => {
                bytes.push(kind::UNSEEN);
                number(bytes, u64::from(table));
            }
            ObservedOperation::Unsearched { table } => {
                bytes.push(kind::UNSEARCHED);
                number(bytes, u64::from(table));
            }
            ObservedOperation::Script { script, snapshot } => {
                bytes.push(if snapshot.is_some() { kind::SNAPSHOT } else { kind::SCRIPT });
                number(bytes, u64::from(script));
                if let Some(TakenSnapshot { own, next, active }) = snapshot {
                    // 0 is no transaction's number.
                    number(bytes, u64::from(own.unwrap_or(0)));
                    number(bytes, u64::from(next));
                    values(bytes, active);
                }
            }
        }
    }
}

fn values(bytes: &mut Vec<u8>, values: &[i64]) {
    number(bytes, values.len() as u64);
    for value in values {
        number(bytes, zigzag(*value));
    }
}

/// Collects the attempts of one thread into chunks.
#[derive(Debug, Default)]
pub struct ObservedEncoder {
    bytes: Vec<u8>,
    attempts: u64,
}

impl ObservedEncoder {
    /// Adds an attempt.
    pub fn push(&mut self, attempt: &Transaction, operations: &ObservedDraft) {
        let Transaction { id, client, begin, end, outcome, mode } = *attempt;
        let bytes = &mut self.bytes;
        let code = TransactionOutcome::ALL.iter().position(|known| *known == outcome).unwrap_or(0);
        // Above the outcome: 0, or the code of the modes and 1.
        let code = code as u64 | mode.map_or(0, |mode| mode.code() + 1) << 2;
        for this in [id, u64::from(client), begin, end, code, operations.operations] {
            number(bytes, this);
        }
        bytes.extend_from_slice(&operations.bytes);
        self.attempts += 1;
    }

    /// The size of the chunk so far, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if the chunk has no attempts.
    pub fn is_empty(&self) -> bool {
        self.attempts == 0
    }

    /// The number of attempts in the chunk so far.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Returns the chunk, and starts the next one.
    pub fn take(&mut self) -> Vec<u8> {
        self.attempts = 0;
        let next = Vec::with_capacity(self.bytes.capacity());
        std::mem::replace(&mut self.bytes, next)
    }
}

/// The numbers of another process's texts in this one, for [`ObservedEncoder::adopt`].
struct Renumbered<'a> {
    description: &'a ObservedDescription,
    texts: &'a [i64],
}

impl Renumbered<'_> {
    fn text(&self, number: i64) -> Result<i64, Problem> {
        let known = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        known.copied().ok_or("a text has a number that does not exist")
    }

    fn key(&self, Key { table, id }: Key) -> Result<Key, Problem> {
        let form = self.description.tables.get(usize::from(table)).map(|table| table.key);
        let id = if form == Some(KeyForm::Numbered) { self.text(id)? } else { id };
        Ok(Key { table, id })
    }

    fn value(&self, table: u16, column: usize, value: i64) -> Result<i64, Problem> {
        let columns = self.description.tables.get(usize::from(table)).map(|table| &table.columns);
        let form = columns.and_then(|columns| columns.get(column)).map(|column| column.form);
        if form.is_some_and(ValueForm::is_numbered) && value != NULL { self.text(value) } else { Ok(value) }
    }

    fn row(&self, key: Key, columns: &[i64]) -> Result<(Key, Vec<i64>), Problem> {
        Ok((self.key(key)?, self.columns(key.table, columns)?))
    }

    fn columns(&self, table: u16, values: &[i64]) -> Result<Vec<i64>, Problem> {
        values.iter().enumerate().map(|(column, value)| self.value(table, column, *value)).collect()
    }

    fn operands(&self, table: u16, predicate: u16, values: &[i64]) -> Result<Vec<i64>, Problem> {
        let mut found = values.to_vec();
        let Some(condition) = self.description.predicates.get(usize::from(predicate)) else {
            return Ok(found);
        };
        let mut outcome = Ok(());
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX);
        condition.each_compared(table, count, &mut |(table, column), operand| {
            let operand = usize::from(operand);
            if let Some(value) = values.get(operand) {
                match self.value(table, usize::from(column), *value) {
                    Ok(value) => found[operand] = value,
                    Err(problem) => outcome = Err(problem),
                }
            }
        });
        outcome.map(|()| found)
    }
}

impl ObservedEncoder {
    /// Adds the attempts of a chunk that another process has made of the same statements. Their
    /// times are widened by `within` nanoseconds on both sides, by which that process's clock may
    /// be wrong; `texts` has the numbers here of its texts, by their numbers there.
    ///
    /// # Errors
    /// The chunk can't be read.
    pub fn adopt(
        &mut self,
        chunk: &[u8],
        description: &ObservedDescription,
        within: u64,
        texts: &[i64],
    ) -> Result<(), FormatError> {
        let renumbered = Renumbered { description, texts };
        self.adopt_all(chunk, &renumbered, within)
            .map_err(|problem| FormatError::Damaged(format!("another machine's log: {problem}")))
    }

    fn adopt_all(&mut self, chunk: &[u8], numbers: &Renumbered<'_>, within: u64) -> Result<(), Problem> {
        let (mut chunk, mut draft) = (Chunk::new(chunk), ObservedDraft::default());
        while let Some((mut attempt, operations)) = chunk.attempt()? {
            draft.clear();
            for _ in 0..operations {
                let (operation, statement) = chunk.operation()?;
                match operation {
                    ObservedOperation::Read { key, writer, columns } => {
                        let (key, columns) = numbers.row(key, columns)?;
                        draft.push(ObservedOperation::Read { key, writer, columns: &columns }, statement);
                    }
                    ObservedOperation::Write { key, writer, replaced, columns } => {
                        let (key, columns) = numbers.row(key, columns)?;
                        let columns = columns.as_slice();
                        draft.push(ObservedOperation::Write { key, writer, replaced, columns }, statement);
                    }
                    ObservedOperation::Delete { key, deleted } => {
                        let key = numbers.key(key)?;
                        draft.push(ObservedOperation::Delete { key, deleted }, statement);
                    }
                    ObservedOperation::Search { table, predicate, key, operands, found } => {
                        let id = |id: i64| numbers.key(Key { table, id }).map(|key| key.id);
                        let found = found.iter().map(|key| id(*key)).collect::<Result<Vec<_>, _>>()?;
                        let operands = numbers.operands(table, predicate, operands)?;
                        let (key, operands, found) = (key.map(id).transpose()?, &operands[..], &found[..]);
                        let search = ObservedOperation::Search { table, predicate, key, operands, found };
                        draft.push(search, statement);
                    }
                    ObservedOperation::Answered { at, unsent } => {
                        let (at, unsent) = (at.saturating_add(within), unsent.saturating_sub(within));
                        draft.push(ObservedOperation::Answered { at, unsent }, statement);
                    }
                    ObservedOperation::Unseen { .. }
                    | ObservedOperation::Unsearched { .. }
                    | ObservedOperation::Script { .. } => draft.push(operation, statement),
                }
            }
            attempt.widen(within);
            self.push(&attempt, &draft);
        }
        Ok(())
    }
}

/// The error of a log that can't be read.
pub(super) fn damaged(problem: &'static str) -> FormatError {
    FormatError::Damaged(format!("the log of what was observed: {problem}"))
}

/// Reads the attempts of a chunk.
pub(super) struct Chunk<'c> {
    bytes: Bytes<'c>,
    columns: Vec<i64>,
    found: Vec<i64>,
}

impl<'c> Chunk<'c> {
    pub(super) fn new(chunk: &'c [u8]) -> Chunk<'c> {
        Chunk { bytes: Bytes { left: chunk }, columns: Vec::new(), found: Vec::new() }
    }

    /// The next attempt, and the number of its operations, which are to be read first.
    pub(super) fn attempt(&mut self) -> Result<Option<(Transaction, u64)>, Problem> {
        if self.bytes.left.is_empty() {
            return Ok(None);
        }
        let id = self.bytes.number()?;
        let client = self.small("a client's number is too large")?;
        let (begin, end) = (self.bytes.number()?, self.bytes.number()?);
        let codes = self.bytes.number()?;
        let mode = match (codes >> 2).checked_sub(1) {
            Some(code) => Some(Mode::of_code(code).ok_or("an attempt has modes that do not exist")?),
            None => None,
        };
        let code = usize::try_from(codes & 3).unwrap_or(usize::MAX);
        let outcome =
            *TransactionOutcome::ALL.get(code).ok_or("an attempt has an outcome that does not exist")?;
        Ok(Some((Transaction { id, client, begin, end, outcome, mode }, self.bytes.number()?)))
    }

    /// The next operation of the attempt, and its statement.
    pub(super) fn operation(&mut self) -> Result<(ObservedOperation<'_>, u16), Problem> {
        let code = self.bytes.byte()?;
        match code {
            kind::ANSWERED => {
                let at = self.bytes.number()?;
                Ok((ObservedOperation::Answered { at, unsent: at }, 0))
            }
            kind::ANSWERED_WITHIN => {
                let (at, unsent) = (self.bytes.number()?, self.bytes.number()?);
                Ok((ObservedOperation::Answered { at, unsent }, 0))
            }
            kind::UNSEEN => Ok((ObservedOperation::Unseen { table: self.short()? }, 0)),
            kind::UNSEARCHED => Ok((ObservedOperation::Unsearched { table: self.short()? }, 0)),
            kind::SCRIPT => Ok((ObservedOperation::Script { script: self.short()?, snapshot: None }, 0)),
            kind::SNAPSHOT => {
                let script = self.short()?;
                let own = Some(self.small("a transaction's number is too large")?).filter(|own| *own > 0);
                let next = self.small("a transaction's number is too large")?;
                list(&mut self.bytes, &mut self.columns)?;
                let snapshot = Some(TakenSnapshot { own, next, active: &self.columns });
                Ok((ObservedOperation::Script { script, snapshot }, 0))
            }
            kind::SEARCH | kind::SEARCH_KEY => {
                let (statement, table, predicate) = (self.short()?, self.short()?, self.short()?);
                let key = if code == kind::SEARCH_KEY { Some(self.bytes.signed()?) } else { None };
                list(&mut self.bytes, &mut self.columns)?;
                list(&mut self.bytes, &mut self.found)?;
                let (operands, found) = (self.columns.as_slice(), self.found.as_slice());
                Ok((ObservedOperation::Search { table, predicate, key, operands, found }, statement))
            }
            kind::READ..=kind::DELETE => self.row(code),
            _ => Err("an operation is of a kind that does not exist"),
        }
    }

    fn row(&mut self, code: u8) -> Result<(ObservedOperation<'_>, u16), Problem> {
        let (statement, table) = (self.short()?, self.short()?);
        let key = Key { table, id: unzigzag(self.bytes.number()?) };
        let writer = self.small("a transaction's number is too large")?;
        if code == kind::DELETE {
            return Ok((ObservedOperation::Delete { key, deleted: writer }, statement));
        }
        let replaced = match code {
            kind::INSERT => Replaced::Nothing,
            kind::REPLACE => Replaced::By(self.small("a transaction's number is too large")?),
            _ => Replaced::Unknown,
        };
        list(&mut self.bytes, &mut self.columns)?;
        let columns = self.columns.as_slice();
        let operation = if code == kind::READ {
            ObservedOperation::Read { key, writer, columns }
        } else {
            ObservedOperation::Write { key, writer, replaced, columns }
        };
        Ok((operation, statement))
    }

    fn small(&mut self, problem: Problem) -> Result<u32, Problem> {
        u32::try_from(self.bytes.number()?).map_err(|_| problem)
    }

    fn short(&mut self) -> Result<u16, Problem> {
        u16::try_from(self.bytes.number()?).map_err(|_| "a number is too large")
    }
}

fn list(bytes: &mut Bytes<'_>, into: &mut Vec<i64>) -> Result<(), Problem> {
    let announced = bytes.number()?;
    let count = bytes.count(announced)?;
    into.clear();
    for _ in 0..count {
        into.push(bytes.signed()?);
    }
    Ok(())
}
