//! From invocations and completions to transactions.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use super::super::{
    Draft, FormatError, History, Initial, Kind, Operation, Outcome, TextError, Transaction, Version,
};
use super::Notation;
use super::edn::Maps;
use super::event::{self, Event, Process, Step, Steps};
use super::json::Objects;
use super::names::Names;

/// Reads a history of list-append or rw-register.
///
/// # Errors
/// The file can't be read, isn't in this notation, or is a history of another workload; the error
/// says in which line.
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
    let (mut reading, mut object) = (Reading::default(), Vec::new());
    while let Some(line) = next(&mut object)? {
        reading
            .event(&object)
            .map_err(|problem| FormatError::Text(TextError { line, column: 0, problem }))?;
    }
    reading.finish().map_err(|problem| FormatError::Text(TextError { line: 0, column: 0, problem }))
}

/// What instants are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Time,
    Index,
    Place,
}

/// What a process is at.
#[derive(Default)]
struct Invocation {
    open: bool,
    begin: u64,
    id: u64,
    /// What it is going to write: the reads of an invocation say nothing.
    writes: Vec<Step>,
}

#[derive(Default)]
struct Reading {
    history: History,
    names: Names,
    /// Without a process an invocation is completed before the next one.
    invocations: HashMap<Option<u32>, Invocation>,
    /// The numbers that operations were given.
    indices: HashSet<u64>,
    clock: Option<Clock>,
    /// How many operations were read.
    place: u64,
    /// Completions, in a history without invocations, and transactions without a process.
    alone: Vec<usize>,
    without_client: Vec<usize>,
    invoked: bool,
    lists: bool,
    registers: bool,
    steps: Steps,
    draft: Draft,
}

impl Reading {
    fn event(&mut self, object: &[u8]) -> Result<(), String> {
        let event = Event::parse(object)?;
        if event.kind == event::Kind::Initial {
            return self.initial(&event);
        }
        if let Some(index) = event.index
            && !self.indices.insert(index)
        {
            return Err(format!("another operation has the index {index} already"));
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
        event.steps(&mut self.names, &mut self.steps)?;
        self.note_model()?;
        if event.kind == event::Kind::Invoke {
            return self.invoke(process, instant, id);
        }
        let outcome = match event.kind {
            event::Kind::Committed => Outcome::Committed,
            event::Kind::Aborted => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        if outcome == Outcome::Committed && !event.has_value() {
            return Err("a committed transaction has no value".to_owned());
        }
        self.complete(process, instant, id, outcome)
    }

    /// What rows held before all transactions.
    fn initial(&mut self, event: &Event<'_>) -> Result<(), String> {
        event.steps(&mut self.names, &mut self.steps)?;
        self.note_model()?;
        let mut elements = self.steps.elements.as_slice();
        for step in &self.steps.steps {
            let (key, initial) = match *step {
                Step::ReadValue { key, value } => (key, Initial::Version(Version::valued(value))),
                Step::ReadList { key, length } => {
                    let (list, rest) = elements.split_at(length);
                    elements = rest;
                    (key, Initial::List(list.to_vec()))
                }
                Step::Append { .. } | Step::Write { .. } | Step::ReadNil { .. } => {
                    return Err("what rows held initially is stated by [\"r\", key, value]".to_owned());
                }
            };
            if !self.history.set_initial(key, initial) {
                return Err("what a row held initially was stated before".to_owned());
            }
        }
        Ok(())
    }

    /// The instant of an operation, and its number.
    fn instant(&mut self, event: &Event<'_>) -> Result<(u64, u64), String> {
        let id = event.index.unwrap_or(self.place);
        // Elle gives operations without a time the time -1.
        let time = event.time.and_then(|time| u64::try_from(time).ok());
        let first = match (time, event.index) {
            (Some(_), _) => Clock::Time,
            (None, Some(_)) => Clock::Index,
            (None, None) => Clock::Place,
        };
        let missing = |what| Err(format!("this operation has no {what}, unlike the first one"));
        let instant = match (*self.clock.get_or_insert(first), time, event.index) {
            (Clock::Time, Some(time), _) => time,
            (Clock::Index, _, Some(index)) => index,
            (Clock::Place, ..) => self.place,
            (Clock::Time, None, _) => return missing("time"),
            (Clock::Index, _, None) => return missing("index"),
        };
        Ok((instant, id))
    }

    fn note_model(&mut self) -> Result<(), String> {
        for step in &self.steps.steps {
            match step {
                Step::Append { .. } | Step::ReadList { .. } => self.lists = true,
                Step::Write { .. } | Step::ReadValue { .. } => self.registers = true,
                Step::ReadNil { .. } => {}
            }
        }
        if self.lists && self.registers {
            return Err("there are both lists (append) and registers (w) in this history".to_owned());
        }
        Ok(())
    }

    fn invoke(&mut self, process: Option<u32>, begin: u64, id: u64) -> Result<(), String> {
        if !self.alone.is_empty() {
            return Err(format!(
                "{} is invoked after transactions were completed that were never invoked",
                whose(process)
            ));
        }
        let invocation = self.invocations.entry(process).or_default();
        if invocation.open {
            return Err(format!("{} is invoked before another one of its is completed", whose(process)));
        }
        invocation.open = true;
        invocation.begin = begin;
        invocation.id = id;
        invocation.writes.clear();
        invocation.writes.extend(self.steps.steps.iter().filter(|step| is_write(step)));
        self.invoked = true;
        Ok(())
    }

    fn complete(&mut self, process: Option<u32>, end: u64, id: u64, outcome: Outcome) -> Result<(), String> {
        let index = self.history.transactions().len();
        let invocation = self.invocations.get_mut(&process).filter(|invocation| invocation.open);
        if self.invoked && invocation.is_none() {
            return Err(format!("{} is completed, and none was invoked", whose(process)));
        }
        let begin = invocation.as_ref().map_or(0, |invocation| invocation.begin);
        if end < begin {
            return Err(format!("{} ends at {end}, before it begins at {begin}", whose(process)));
        }
        self.draft.clear();
        if outcome == Outcome::Committed {
            push_all(&self.steps, &mut self.draft);
        } else {
            let writes = match &invocation {
                Some(invocation) => &invocation.writes,
                None => &self.steps.steps,
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
        let end = if outcome == Outcome::Unknown { u64::MAX } else { end };
        let client = process.unwrap_or(0);
        self.history.push(Transaction { id, client, begin, end, outcome }, &self.draft);
        Ok(())
    }

    fn finish(mut self) -> Result<History, String> {
        let mut open: Vec<(Option<u32>, Invocation)> =
            self.invocations.drain().filter(|(_, invocation)| invocation.open).collect();
        open.sort_by_key(|(process, invocation)| (invocation.begin, *process));
        for (process, Invocation { begin, id, writes, .. }) in open {
            self.draft.clear();
            push_writes(&writes, &mut self.draft);
            if process.is_none() {
                self.without_client.push(self.history.transactions().len());
            }
            let (client, outcome) = (process.unwrap_or(0), Outcome::Unknown);
            self.history.push(Transaction { id, client, begin, end: u64::MAX, outcome }, &self.draft);
        }
        for index in self.alone {
            self.history.transactions[index].end = 0;
        }
        if !self.history.give_clients(&self.without_client) {
            return Err("there are too many clients".to_owned());
        }
        if self.lists {
            // Only now it is known what was not there.
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

/// A transaction in errors, by its process.
fn whose(process: Option<u32>) -> String {
    process.map_or_else(
        || "a transaction without process".to_owned(),
        |process| format!("a transaction of process {process}"),
    )
}

fn is_write(step: &Step) -> bool {
    matches!(step, Step::Append { .. } | Step::Write { .. })
}

fn push_all(steps: &Steps, draft: &mut Draft) {
    let mut elements = steps.elements.as_slice();
    for step in &steps.steps {
        draft.push(match *step {
            Step::Append { key, element } => Operation::Append { key, element },
            Step::Write { key, value } => Operation::Write { key, version: Version::valued(value) },
            Step::ReadNil { key } => Operation::Read { key, version: Version::INITIAL },
            Step::ReadValue { key, value } => Operation::Read { key, version: Version::valued(value) },
            Step::ReadList { key, length } => {
                let (list, rest) = elements.split_at(length);
                elements = rest;
                Operation::ReadList { key, elements: list }
            }
        });
    }
}

fn push_writes(steps: &[Step], draft: &mut Draft) {
    for step in steps {
        match *step {
            Step::Append { key, element } => draft.push(Operation::Append { key, element }),
            Step::Write { key, value } => {
                draft.push(Operation::Write { key, version: Version::valued(value) });
            }
            _ => {}
        }
    }
}
