//! Combines invocations and completions into transactions.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use super::super::{
    Draft, FormatError, History, Initial, Kind, Mode, Operation, TextError, Transaction, TransactionOutcome,
    Version,
};
use super::Notation;
use super::edn::Maps;
use super::event::{self, ElleOperation, ElleOperations, Event, Process};
use super::json::Objects;
use super::names::Names;

/// Reads a history of list-append or rw-register.
///
/// # Errors
/// If the file can't be read, isn't in this notation, or is a history of another workload; the
/// error has the line.
pub fn read(notation: Notation, input: impl BufRead) -> Result<History, FormatError> {
    match notation {
        Notation::Edn => {
            let mut maps = Maps::new(input);
            all(|object| maps.next(object))
        }
        Notation::Json => {
            let mut objects = Objects::new(input);
            all(|object| objects.next(object))
        }
    }
}

fn all(
    mut next: impl FnMut(&mut Vec<u8>) -> Result<Option<u64>, FormatError>,
) -> Result<History, FormatError> {
    let (mut reading, mut object) = (HistoryBuilder::default(), Vec::new());
    while let Some(line) = next(&mut object)? {
        reading
            .event(&object)
            .map_err(|problem| FormatError::Text(TextError { line, column: 0, problem }))?;
    }
    reading.finish().map_err(|problem| FormatError::Text(TextError { line: 0, column: 0, problem }))
}

/// The source of instants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Time,
    Index,
    Position,
}

/// An open invocation of a process.
#[derive(Default)]
struct Invocation {
    open: bool,
    begin: u64,
    id: u64,
    mode: Option<Mode>,
    /// The operations that will write; the reads of an invocation have no values yet.
    writes: Vec<ElleOperation>,
}

#[derive(Default)]
struct HistoryBuilder {
    history: History,
    names: Names,
    /// Open invocations. Without processes, each invocation is completed before the next one.
    invocations: HashMap<Option<u32>, Invocation>,
    /// The indices of the operations so far.
    indices: HashSet<u64>,
    clock: Option<Clock>,
    /// The number of operations read.
    place: u64,
    /// The completions in a history without invocations, and transactions without a process.
    alone: Vec<usize>,
    without_client: Vec<usize>,
    invoked: bool,
    lists: bool,
    registers: bool,
    operations: ElleOperations,
    draft: Draft,
}

impl HistoryBuilder {
    fn event(&mut self, object: &[u8]) -> Result<(), String> {
        let event = Event::parse(object)?;
        if event.kind == event::Kind::Initial {
            return self.initial(&event);
        }
        if let Some(index) = event.index
            && !self.indices.insert(index)
        {
            return Err(format!("another operation already has the index {index}"));
        }
        let process = match event.process()? {
            Process::Client(process) => Some(process),
            Process::Missing => None,
            Process::Other => {
                self.place += 1;
                return Ok(());
            }
        };
        event.expect_transaction()?;
        let (instant, id) = self.instant(&event)?;
        self.place += 1;
        event.operations(&mut self.names, &mut self.operations)?;
        self.note_model()?;
        if event.kind == event::Kind::Invoke {
            return self.invoke(process, instant, id, event.mode()?);
        }
        let outcome = match event.kind {
            event::Kind::Committed => TransactionOutcome::Committed,
            event::Kind::Aborted => TransactionOutcome::Aborted,
            _ => TransactionOutcome::Unknown,
        };
        if outcome == TransactionOutcome::Committed && !event.has_value() {
            return Err("a committed transaction has no value".to_owned());
        }
        self.complete(process, instant, id, (outcome, event.mode()?))
    }

    /// Reads the initial values of rows.
    fn initial(&mut self, event: &Event<'_>) -> Result<(), String> {
        event.operations(&mut self.names, &mut self.operations)?;
        self.note_model()?;
        let mut elements = self.operations.elements.as_slice();
        for operation in &self.operations.operations {
            let (key, initial) = match *operation {
                ElleOperation::ReadValue { key, value } => (key, Initial::Version(Version::valued(value))),
                ElleOperation::ReadList { key, length } => {
                    let (list, rest) = elements.split_at(length);
                    elements = rest;
                    (key, Initial::List(list.to_vec()))
                }
                ElleOperation::Append { .. }
                | ElleOperation::Write { .. }
                | ElleOperation::ReadNil { .. } => {
                    return Err("initial values of rows are stated by [\"r\", key, value]".to_owned());
                }
            };
            if !self.history.set_initial(key, initial) {
                return Err("the row's initial value was already stated".to_owned());
            }
        }
        Ok(())
    }

    /// The instant of an operation, and its number.
    fn instant(&mut self, event: &Event<'_>) -> Result<(u64, u64), String> {
        let id = event.index.unwrap_or(self.place);
        // Elle uses the time -1 for operations without a time.
        let time = event.time.and_then(|time| u64::try_from(time).ok());
        let first = match (time, event.index) {
            (Some(_), _) => Clock::Time,
            (None, Some(_)) => Clock::Index,
            (None, None) => Clock::Position,
        };
        let missing = |what| Err(format!("this operation has no {what}, unlike the first one"));
        let instant = match (*self.clock.get_or_insert(first), time, event.index) {
            (Clock::Time, Some(time), _) => time,
            (Clock::Index, _, Some(index)) => index,
            (Clock::Position, ..) => self.place,
            (Clock::Time, None, _) => return missing("time"),
            (Clock::Index, _, None) => return missing("index"),
        };
        Ok((instant, id))
    }

    fn note_model(&mut self) -> Result<(), String> {
        for operation in &self.operations.operations {
            match operation {
                ElleOperation::Append { .. } | ElleOperation::ReadList { .. } => self.lists = true,
                ElleOperation::Write { .. } | ElleOperation::ReadValue { .. } => self.registers = true,
                ElleOperation::ReadNil { .. } => {}
            }
        }
        if self.lists && self.registers {
            return Err("there are both lists (append) and registers (w) in this history".to_owned());
        }
        Ok(())
    }

    fn invoke(
        &mut self,
        process: Option<u32>,
        begin: u64,
        id: u64,
        mode: Option<Mode>,
    ) -> Result<(), String> {
        if !self.alone.is_empty() {
            return Err(format!(
                "{} is invoked after transactions that were completed without being invoked",
                whose(process)
            ));
        }
        let invocation = self.invocations.entry(process).or_default();
        if invocation.open {
            return Err(format!("{} is invoked before the preceding one is completed", whose(process)));
        }
        invocation.open = true;
        invocation.begin = begin;
        invocation.id = id;
        invocation.mode = mode;
        invocation.writes.clear();
        invocation.writes.extend(self.operations.operations.iter().filter(|operation| is_write(operation)));
        self.invoked = true;
        Ok(())
    }

    fn complete(
        &mut self,
        process: Option<u32>,
        end: u64,
        id: u64,
        (outcome, mode): (TransactionOutcome, Option<Mode>),
    ) -> Result<(), String> {
        let index = self.history.transactions().len();
        let invocation = self.invocations.get_mut(&process).filter(|invocation| invocation.open);
        if self.invoked && invocation.is_none() {
            return Err(format!("{} is completed without having been invoked", whose(process)));
        }
        let begin = invocation.as_ref().map_or(0, |invocation| invocation.begin);
        let mode = mode.or(invocation.as_ref().and_then(|invocation| invocation.mode));
        if end < begin {
            return Err(format!("{} ends at {end}, before it starts at {begin}", whose(process)));
        }
        self.draft.clear();
        if outcome == TransactionOutcome::Committed {
            push_all(&self.operations, &mut self.draft);
        } else {
            let writes = match &invocation {
                Some(invocation) => &invocation.writes,
                None => &self.operations.operations,
            };
            push_writes(writes, &mut self.draft);
        }
        if let Some(invocation) = invocation {
            invocation.open = false;
        } else {
            self.alone.push(index);
        }
        if process.is_none() {
            self.without_client.push(index);
        }
        let end = if outcome == TransactionOutcome::Unknown { u64::MAX } else { end };
        let client = process.unwrap_or(0);
        self.history.push(Transaction { id, client, begin, end, outcome, mode }, &self.draft);
        Ok(())
    }

    fn finish(mut self) -> Result<History, String> {
        let mut open: Vec<(Option<u32>, Invocation)> =
            self.invocations.drain().filter(|(_, invocation)| invocation.open).collect();
        open.sort_by_key(|(process, invocation)| (invocation.begin, *process));
        for (process, Invocation { begin, id, mode, writes, .. }) in open {
            self.draft.clear();
            push_writes(&writes, &mut self.draft);
            if process.is_none() {
                self.without_client.push(self.history.transactions().len());
            }
            let (client, outcome) = (process.unwrap_or(0), TransactionOutcome::Unknown);
            self.history.push(Transaction { id, client, begin, end: u64::MAX, outcome, mode }, &self.draft);
        }
        for index in self.alone {
            self.history.transactions[index].end = 0;
        }
        if !self.history.give_clients(&self.without_client) {
            return Err("there are too many clients".to_owned());
        }
        if self.lists {
            // At this point it is known which rows didn't exist.
            for record in &mut self.history.records {
                if record.kind == Kind::Read {
                    record.kind = Kind::ReadList;
                }
            }
        }
        self.names.name_tables(self.lists, &mut self.history);
        Ok(self.history)
    }
}

/// The subject of errors about a transaction: its process.
fn whose(process: Option<u32>) -> String {
    process.map_or_else(
        || "a transaction without process".to_owned(),
        |process| format!("a transaction of process {process}"),
    )
}

fn is_write(operation: &ElleOperation) -> bool {
    matches!(operation, ElleOperation::Append { .. } | ElleOperation::Write { .. })
}

fn push_all(operations: &ElleOperations, draft: &mut Draft) {
    let mut elements = operations.elements.as_slice();
    for operation in &operations.operations {
        draft.push(match *operation {
            ElleOperation::Append { key, element } => Operation::Append { key, element },
            ElleOperation::Write { key, value } => Operation::Write { key, version: Version::valued(value) },
            ElleOperation::ReadNil { key } => Operation::Read { key, version: Version::INITIAL },
            ElleOperation::ReadValue { key, value } => {
                Operation::Read { key, version: Version::valued(value) }
            }
            ElleOperation::ReadList { key, length } => {
                let (list, rest) = elements.split_at(length);
                elements = rest;
                Operation::ReadList { key, elements: list }
            }
        });
    }
}

fn push_writes(operations: &[ElleOperation], draft: &mut Draft) {
    for operation in operations {
        match *operation {
            ElleOperation::Append { key, element } => draft.push(Operation::Append { key, element }),
            ElleOperation::Write { key, value } => {
                draft.push(Operation::Write { key, version: Version::valued(value) });
            }
            _ => {}
        }
    }
}
