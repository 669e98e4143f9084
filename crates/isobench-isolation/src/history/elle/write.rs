//! Splits transactions into invocations and completions.

use std::io::{self, Write};

use super::super::{History, Initial, Key, Mode, Operation, Transaction, TransactionOutcome};
use super::Notation;
use super::representation::{Representation, spell};

/// The reason that a history can't be written in Elle's formats.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// The output can't be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The initial values of rows can't be stated in recordings.
    #[error("a recording can't state the initial values of rows; text, EDN and JSON can")]
    Initial,
    /// A transaction has an operation that these formats can't express.
    #[error("Elle's formats can't express what T{transaction} did: {what}")]
    Inexpressible {
        /// The transaction's number.
        transaction: u64,
        /// The operation.
        what: &'static str,
    },
}

/// Writes a history of lists or of registers.
///
/// # Errors
/// If the output can't be written, or the history has something that Elle's formats can't express.
pub fn write(notation: Notation, history: &History, output: impl Write) -> Result<(), Unwritable> {
    let representation = Representation::of(history);
    let mut writer = Writer { notation, history, representation, output, place: 0, lists: None };
    for (key, initial) in history.initial() {
        writer.initial(*key, initial)?;
    }
    for event in events(history) {
        writer.event(event)?;
    }
    Ok(writer.output.flush()?)
}

/// An invocation or a completion.
#[derive(Clone, Copy)]
struct Event {
    transaction: usize,
    process: u64,
    /// The time; `None` if the history has no instants at all.
    time: Option<u64>,
    invocation: bool,
}

/// All events in the order of real time. At the same instant invocations come first, because then
/// neither transaction ended before the other started; but a client's next invocation comes after
/// its completion.
fn events(history: &History) -> Vec<Event> {
    let transactions = history.transactions();
    if transactions.iter().all(|transaction| transaction.end == 0) {
        return transactions
            .iter()
            .enumerate()
            .map(|(transaction, facts)| Event {
                transaction,
                process: u64::from(facts.client),
                time: None,
                invocation: false,
            })
            .collect();
    }
    let mut events = Vec::with_capacity(transactions.len() * 2);
    for (transaction, (process, follows, followed)) in processes(transactions).into_iter().enumerate() {
        let Transaction { begin, end, .. } = transactions[transaction];
        let sequence = transaction * 2;
        let event = |time, invocation| Event { transaction, process, time: Some(time), invocation };
        events.push(((begin, u8::from(follows), process, sequence), event(begin, true)));
        if end < u64::MAX {
            let rank = if followed { 1 } else { 2 };
            events.push(((end.max(begin), rank, process, sequence + 1), event(end, false)));
        }
    }
    events.sort_unstable_by_key(|(place, _)| *place);
    events.into_iter().map(|(_, event)| event).collect()
}

/// For each transaction its process, whether it starts at the instant at which the preceding one
/// ends, and whether it ends when the next one starts. As in Jepsen, a process ends with a
/// transaction whose end isn't known, and the client continues as a new process.
fn processes(transactions: &[Transaction]) -> Vec<(u64, bool, bool)> {
    let clients = transactions.iter().map(|transaction| u64::from(transaction.client) + 1).max().unwrap_or(0);
    let mut last: std::collections::HashMap<u32, (u64, usize)> = std::collections::HashMap::new();
    let mut processes: Vec<(u64, bool, bool)> = Vec::with_capacity(transactions.len());
    for (index, transaction) in transactions.iter().enumerate() {
        let mut process = u64::from(transaction.client);
        let mut follows = false;
        if let Some((before, previous)) = last.get(&transaction.client) {
            let end = transactions[*previous].end;
            follows = end == transaction.begin && end < u64::MAX;
            // In Elle, the transactions of a process don't overlap.
            process = if end <= transaction.begin && end < u64::MAX { *before } else { before + clients };
            processes[*previous].2 = follows;
        }
        last.insert(transaction.client, (process, index));
        processes.push((process, follows, false));
    }
    processes
}

struct Writer<'h, W> {
    notation: Notation,
    history: &'h History,
    representation: Representation<'h>,
    output: W,
    /// The number of events written.
    place: u64,
    /// The kind of data of the operations so far.
    lists: Option<bool>,
}

impl<W: Write> Writer<'_, W> {
    /// Writes the initial contents of a row, unless they are a version without a value.
    fn initial(&mut self, key: Key, initial: &Initial) -> Result<(), Unwritable> {
        if let Initial::Version(version) = initial
            && (version.value.is_none() || !self.representation.by_value())
        {
            return Ok(());
        }
        self.output.write_all(match self.notation {
            Notation::Edn => b"{:type :initial, :value [",
            Notation::Json => b"{\"type\":\"initial\",\"value\":[",
        })?;
        self.begin("r", key)?;
        match initial {
            Initial::Version(version) => write!(self.output, "{}", version.value.unwrap_or_default())?,
            Initial::List(elements) => self.list(elements)?,
        }
        writeln!(self.output, "]]}}")?;
        Ok(())
    }

    fn list(&mut self, elements: &[i64]) -> io::Result<()> {
        self.output.write_all(b"[")?;
        for (place, element) in elements.iter().enumerate() {
            if place > 0 {
                self.separate()?;
            }
            write!(self.output, "{element}")?;
        }
        self.output.write_all(b"]")
    }

    fn event(&mut self, event: Event) -> Result<(), Unwritable> {
        let facts = self.history.transactions()[event.transaction];
        let kind = match facts.outcome {
            _ if event.invocation => "invoke",
            TransactionOutcome::Committed => "ok",
            TransactionOutcome::Aborted => "fail",
            TransactionOutcome::Unknown => "info",
        };
        let (place, process) = (self.place, event.process);
        match self.notation {
            Notation::Edn => write!(self.output, "{{:index {place}, :type :{kind}, :process {process}")?,
            Notation::Json => {
                write!(self.output, "{{\"index\":{place},\"type\":\"{kind}\",\"process\":{process}")?;
            }
        }
        match (event.time, self.notation) {
            (None, _) => {}
            (Some(time), Notation::Edn) => write!(self.output, ", :time {time}")?,
            (Some(time), Notation::Json) => write!(self.output, ",\"time\":{time}")?,
        }
        if let Some(mode) = facts.mode {
            self.mode(mode)?;
        }
        let tail = match self.notation {
            Notation::Edn => ", :f :txn, :value [",
            Notation::Json => ",\"f\":\"txn\",\"value\":[",
        };
        self.output.write_all(tail.as_bytes())?;
        let reads = kind == "ok";
        for (place, operation) in self.history.operations(event.transaction).enumerate() {
            if place > 0 {
                self.separate()?;
            }
            self.operation(operation, reads, facts.id)?;
        }
        writeln!(self.output, "]}}")?;
        self.place += 1;
        Ok(())
    }

    fn mode(&mut self, mode: Mode) -> io::Result<()> {
        let level = mode.level.name().replace(' ', "-");
        let flags = [(mode.read_only, "read-only"), (mode.deferrable, "deferrable")];
        let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
        match self.notation {
            Notation::Edn => {
                write!(self.output, ", :level :{level}")?;
                flags.into_iter().try_for_each(|name| write!(self.output, ", :{name} true"))
            }
            Notation::Json => {
                write!(self.output, ",\"level\":\"{level}\"")?;
                flags.into_iter().try_for_each(|name| write!(self.output, ",\"{name}\":true"))
            }
        }
    }

    fn separate(&mut self) -> io::Result<()> {
        self.output.write_all(if self.notation == Notation::Edn { b" " } else { b"," })
    }

    fn operation(
        &mut self,
        operation: Operation<'_>,
        reads: bool,
        transaction: u64,
    ) -> Result<(), Unwritable> {
        let inexpressible = |what| Unwritable::Inexpressible { transaction, what };
        let (lists, verb, key) = match operation {
            Operation::Read { key, .. } => (false, "r", key),
            Operation::Write { key, .. } => (false, "w", key),
            Operation::Append { key, .. } => (true, "append", key),
            Operation::ReadList { key, .. } => (true, "r", key),
            Operation::Insert { .. } | Operation::ReadGroup { .. } => {
                return Err(inexpressible("rows of groups"));
            }
            Operation::Missed { .. } => return Err(inexpressible("rows that a search missed")),
        };
        if *self.lists.get_or_insert(lists) != lists {
            return Err(inexpressible("operations on both lists and registers"));
        }
        self.begin(verb, key)?;
        match operation {
            Operation::Write { version, .. } => {
                let number = self.representation.written(version).map_err(inexpressible)?;
                write!(self.output, "{number}")?;
            }
            Operation::Append { element, .. } => write!(self.output, "{element}")?,
            Operation::Read { key, version } if reads => {
                match self.representation.read(key, version).map_err(inexpressible)? {
                    Some(number) => write!(self.output, "{number}")?,
                    None => self.nothing()?,
                }
            }
            Operation::ReadList { elements, .. } if reads => {
                self.list(elements)?;
            }
            _ => self.nothing()?,
        }
        self.output.write_all(b"]")?;
        Ok(())
    }

    fn begin(&mut self, verb: &str, key: Key) -> io::Result<()> {
        let key = spell(&self.representation.key(key), self.notation);
        match self.notation {
            Notation::Edn => write!(self.output, "[:{verb} {key} "),
            Notation::Json => write!(self.output, "[\"{verb}\",{key},"),
        }
    }

    fn nothing(&mut self) -> io::Result<()> {
        self.output.write_all(if self.notation == Notation::Edn { b"nil" } else { b"null" })
    }
}
