//! One operation of Elle's, as a JSON object.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::Key;
use super::names::Names;

/// An operation whose value isn't understood yet.
#[derive(Deserialize)]
pub(super) struct Event<'b> {
    #[serde(rename = "type")]
    pub kind: Kind,
    /// A name (`nemesis`) is no client.
    #[serde(borrow, default)]
    process: Option<&'b RawValue>,
    #[serde(default)]
    pub time: Option<i64>,
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    f: Option<&'b RawValue>,
    #[serde(borrow, default)]
    value: Option<&'b RawValue>,
}

/// What happened.
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
    /// Not one of Elle's: what rows held before all transactions.
    Initial,
}

/// Whose operation it is.
pub(super) enum Process {
    Client(u32),
    Missing,
    /// Of something that is no client.
    Other,
}

/// One step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Append {
        key: Key,
        element: i64,
    },
    Write {
        key: Key,
        value: i64,
    },
    /// A read of nothing: of no list, or no register, or unknown.
    ReadNil {
        key: Key,
    },
    ReadValue {
        key: Key,
        value: i64,
    },
    /// A read of a list, the next ones of [`Steps::elements`].
    ReadList {
        key: Key,
        length: usize,
    },
}

/// The steps of a transaction; used again and again.
#[derive(Default)]
pub(super) struct Steps {
    pub steps: Vec<Step>,
    pub elements: Vec<i64>,
}

impl<'b> Event<'b> {
    /// Understands an object as far as its fields.
    pub fn parse(object: &'b [u8]) -> Result<Event<'b>, String> {
        serde_json::from_slice(object).map_err(|error| words(&error))
    }

    /// The process.
    pub fn process(&self) -> Result<Process, String> {
        let Some(process) = self.process.map(RawValue::get) else { return Ok(Process::Missing) };
        if process.starts_with('"') {
            return Ok(Process::Other);
        }
        process.parse().map(Process::Client).map_err(|_| format!("{process} is no process number"))
    }

    /// Fails if it is an operation of another workload.
    pub fn expect_transaction(&self) -> Result<(), String> {
        match self.f.map(RawValue::get) {
            None | Some("\"txn\"") => Ok(()),
            Some(f) => Err(format!(
                "this is an operation {f}; isobench reads histories of transactions only (\"txn\", list-append or rw-register)"
            )),
        }
    }

    /// The steps; none if there is no value.
    pub fn steps(&self, names: &mut Names, into: &mut Steps) -> Result<(), String> {
        into.steps.clear();
        into.elements.clear();
        let Some(value) = self.value else { return Ok(()) };
        let mut reader = serde_json::Deserializer::from_str(value.get());
        Transaction { names, into }.deserialize(&mut reader).map_err(|error| words(&error))
    }

    /// True if it says what was done.
    pub fn has_value(&self) -> bool {
        self.value.is_some()
    }
}

/// serde's error without the place, which is one in the object.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}

/// Reads `[[f, key, value], …]`.
struct Transaction<'s> {
    names: &'s mut Names,
    into: &'s mut Steps,
}

impl<'de> DeserializeSeed<'de> for Transaction<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Transaction<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transaction: a list of [f, key, value]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(One { names: self.names, into: self.into })?.is_some() {}
        Ok(())
    }
}

/// Reads `[f, key, value]`.
struct One<'s> {
    names: &'s mut Names,
    into: &'s mut Steps,
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

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a step of a transaction: [\"append\", key, element], [\"w\", key, value] or [\"r\", key, value]",
        )
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let verb = seq.next_element::<Verb>()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let key = seq.next_element_seed(KeyOf(self.names))?;
        let key = key.ok_or_else(|| A::Error::custom("a step of a transaction has no key"))?;
        let elements = &mut self.into.elements;
        let seen = seq.next_element_seed(SeenOf(elements))?.unwrap_or(Seen::Nil);
        let step = match (verb, seen) {
            (Verb::Append, Seen::Number(element)) => Step::Append { key, element },
            (Verb::Append, _) => return Err(A::Error::custom("an appended element is no integer")),
            (Verb::Write, Seen::Number(value)) => Step::Write { key, value },
            (Verb::Write, _) => return Err(A::Error::custom("a written value is no integer")),
            (Verb::Read, Seen::Number(value)) => Step::ReadValue { key, value },
            (Verb::Read, Seen::List(length)) => Step::ReadList { key, length },
            (Verb::Read, Seen::Nil) => Step::ReadNil { key },
        };
        self.into.steps.push(step);
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Reads a key.
struct KeyOf<'s>(&'s mut Names);

impl<'de> DeserializeSeed<'de> for KeyOf<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeyOf<'_> {
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

/// What a step's third part is.
enum Seen {
    Nil,
    Number(i64),
    /// So many elements, which were added to the list.
    List(usize),
}

struct SeenOf<'s>(&'s mut Vec<i64>);

impl<'de> DeserializeSeed<'de> for SeenOf<'_> {
    type Value = Seen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SeenOf<'_> {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, a list of integers, or nothing")
    }

    fn visit_unit<E: Error>(self) -> Result<Seen, E> {
        Ok(Seen::Nil)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Seen, E> {
        Ok(Seen::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Seen, E> {
        narrow(number).map(Seen::Number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seen, A::Error> {
        let before = self.0.len();
        while let Some(element) = seq.next_element()? {
            self.0.push(element);
        }
        Ok(Seen::List(self.0.len() - before))
    }
}

fn narrow<E: Error>(number: u64) -> Result<i64, E> {
    i64::try_from(number)
        .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &"an integer of 64 bits with sign"))
}
