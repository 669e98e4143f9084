//! An operation of Elle, as a JSON object.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::{Key, Mode};
use super::names::Names;
use crate::level::Level;

/// An operation whose value hasn't been parsed yet.
#[derive(Deserialize)]
pub(super) struct Event<'b> {
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The process; a name (such as `nemesis`) isn't a client.
    #[serde(borrow, default)]
    process: Option<&'b RawValue>,
    #[serde(default)]
    pub time: Option<i64>,
    #[serde(default)]
    pub index: Option<u64>,
    /// The level, an extension of Elle's format, as are the two following ones.
    #[serde(default)]
    level: Option<Level>,
    #[serde(rename = "read-only", default)]
    read_only: bool,
    #[serde(default)]
    deferrable: bool,
    #[serde(borrow, default)]
    f: Option<&'b RawValue>,
    #[serde(borrow, default)]
    value: Option<&'b RawValue>,
}

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Invoke,
    #[serde(rename = "ok")]
    Committed,
    #[serde(rename = "fail")]
    Aborted,
    #[serde(rename = "info")]
    Unknown,
    /// The initial values of rows, an extension of Elle's format.
    Initial,
}

/// The process of an operation.
pub(super) enum Process {
    Client(u32),
    Missing,
    /// A process that isn't a client.
    Other,
}

/// An operation within a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElleOperation {
    Append {
        key: Key,
        element: i64,
    },
    Write {
        key: Key,
        value: i64,
    },
    /// A read of nothing: a missing list or register, or an unknown value.
    ReadNil {
        key: Key,
    },
    ReadValue {
        key: Key,
        value: i64,
    },
    /// A read of a list, whose elements are the next ones in [`ElleOperations::elements`].
    ReadList {
        key: Key,
        length: usize,
    },
}

/// The operations of a transaction; reused.
#[derive(Default)]
pub(super) struct ElleOperations {
    pub operations: Vec<ElleOperation>,
    pub elements: Vec<i64>,
}

impl<'b> Event<'b> {
    /// Parses the fields of an object.
    pub fn parse(object: &'b [u8]) -> Result<Event<'b>, String> {
        serde_json::from_slice(object).map_err(|error| words(&error))
    }

    /// Parses the process.
    pub fn process(&self) -> Result<Process, String> {
        let Some(process) = self.process.map(RawValue::get) else { return Ok(Process::Missing) };
        if process.starts_with('"') {
            return Ok(Process::Other);
        }
        process.parse().map(Process::Client).map_err(|_| format!("{process} isn't a process number"))
    }

    /// The modes of the transaction, if its level is stated.
    pub fn mode(&self) -> Result<Option<Mode>, String> {
        let Event { level, read_only, deferrable, .. } = *self;
        match level {
            Some(level) => Ok(Some(Mode { level, read_only, deferrable })),
            None if read_only || deferrable => {
                Err("\"read-only\" and \"deferrable\" need a \"level\"".to_owned())
            }
            None => Ok(None),
        }
    }

    /// Fails if it is an operation of another workload.
    pub fn expect_transaction(&self) -> Result<(), String> {
        match self.f.map(RawValue::get) {
            None | Some("\"txn\"") => Ok(()),
            Some(f) => Err(format!(
                "this is an operation {f}; isobench reads histories of transactions only (\"txn\", \
                 list-append or rw-register)"
            )),
        }
    }

    /// Parses the operations; there are none without a value.
    pub fn operations(&self, names: &mut Names, into: &mut ElleOperations) -> Result<(), String> {
        into.operations.clear();
        into.elements.clear();
        let Some(value) = self.value else { return Ok(()) };
        let mut reader = serde_json::Deserializer::from_str(value.get());
        TransactionSeed { names, into }.deserialize(&mut reader).map_err(|error| words(&error))
    }

    /// True if the event has a value.
    pub fn has_value(&self) -> bool {
        self.value.is_some()
    }
}

/// serde's error without the position, which is relative to the object.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}

/// Parses `[[f, key, value], …]`.
struct TransactionSeed<'s> {
    names: &'s mut Names,
    into: &'s mut ElleOperations,
}

impl<'de> DeserializeSeed<'de> for TransactionSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for TransactionSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transaction: a list of [f, key, value]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(OperationSeed { names: self.names, into: self.into })?.is_some() {}
        Ok(())
    }
}

/// Parses `[f, key, value]`.
struct OperationSeed<'s> {
    names: &'s mut Names,
    into: &'s mut ElleOperations,
}

#[derive(Deserialize)]
enum Verb {
    #[serde(rename = "append", alias = ":append")]
    Append,
    #[serde(rename = "w", alias = ":w")]
    Write,
    #[serde(rename = "r", alias = ":r")]
    Read,
}

impl<'de> DeserializeSeed<'de> for OperationSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OperationSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a step of a transaction: [\"append\", key, element], [\"w\", key, value] or [\"r\", key, value]",
        )
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let verb = seq.next_element::<Verb>()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let key = seq.next_element_seed(KeySeed(self.names))?;
        let key = key.ok_or_else(|| A::Error::custom("a step of a transaction has no key"))?;
        let elements = &mut self.into.elements;
        let value = seq.next_element_seed(ValueSeed(elements))?.unwrap_or(OperationValue::Nil);
        let operation = match (verb, value) {
            (Verb::Append, OperationValue::Number(element)) => ElleOperation::Append { key, element },
            (Verb::Append, _) => return Err(A::Error::custom("an appended element isn't an integer")),
            (Verb::Write, OperationValue::Number(value)) => ElleOperation::Write { key, value },
            (Verb::Write, _) => return Err(A::Error::custom("a written value isn't an integer")),
            (Verb::Read, OperationValue::Number(value)) => ElleOperation::ReadValue { key, value },
            (Verb::Read, OperationValue::List(length)) => ElleOperation::ReadList { key, length },
            (Verb::Read, OperationValue::Nil) => ElleOperation::ReadNil { key },
        };
        self.into.operations.push(operation);
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Parses a key.
struct KeySeed<'s>(&'s mut Names);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key: an integer or a name")
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<Key, E> {
        Ok(Names::numbered(id))
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Key, E> {
        narrow(id).map(Names::numbered)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
        Ok(self.0.named(name.strip_prefix(':').unwrap_or(name)))
    }
}

/// The third part of an operation.
enum OperationValue {
    Nil,
    Number(i64),
    /// A list with this many elements, which were added to the buffer.
    List(usize),
}

struct ValueSeed<'s>(&'s mut Vec<i64>);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = OperationValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OperationValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = OperationValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, a list of integers, or nothing")
    }

    fn visit_unit<E: Error>(self) -> Result<OperationValue, E> {
        Ok(OperationValue::Nil)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<OperationValue, E> {
        Ok(OperationValue::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<OperationValue, E> {
        narrow(number).map(OperationValue::Number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OperationValue, A::Error> {
        let before = self.0.len();
        while let Some(element) = seq.next_element()? {
            self.0.push(element);
        }
        Ok(OperationValue::List(self.0.len() - before))
    }
}

fn narrow<E: Error>(number: u64) -> Result<i64, E> {
    i64::try_from(number)
        .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &"a signed 64-bit integer"))
}
