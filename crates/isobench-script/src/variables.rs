//! The variables of one client: typed values, or text that an expression converts on first use.

use crate::error::EvalError;
use crate::symbols::{Slot, Symbols};
use crate::value::Value;

/// The content of a variable.
#[derive(Debug, Default, PartialEq)]
pub enum Variable {
    /// Nothing: a reference in SQL is sent as written; in an expression it is an error.
    #[default]
    Unset,
    /// A value assigned by `\set`, or an automatic variable.
    Value(Value),
    /// Text from `-D`, `\gset`, `\aset` or `\setshell`, substituted verbatim.
    Text(String),
}

impl Clone for Variable {
    fn clone(&self) -> Self {
        match self {
            Self::Unset => Self::Unset,
            Self::Value(value) => Self::Value(*value),
            Self::Text(text) => Self::Text(text.clone()),
        }
    }

    // The snapshot at the start of each transaction must not allocate, so texts reuse their
    // buffers.
    fn clone_from(&mut self, source: &Self) {
        match (self, source) {
            (Self::Text(mine), Self::Text(theirs)) => mine.clone_from(theirs),
            (this, other) => *this = other.clone(),
        }
    }
}

/// The variables of one client, by slot.
#[derive(Debug, Default, PartialEq)]
pub struct Variables {
    slots: Vec<Variable>,
}

impl Clone for Variables {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone() }
    }

    // The snapshot for retries: copies the values without allocating, unless a text has grown.
    fn clone_from(&mut self, source: &Self) {
        self.slots.clone_from(&source.slots);
    }
}

const UNSET: Variable = Variable::Unset;

impl Variables {
    /// All unset, with room for the names known so far (later names are accepted too).
    pub fn new(symbols: &Symbols) -> Self {
        Self { slots: vec![UNSET; symbols.len()] }
    }

    /// The content of the variable.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Variable {
        self.slots.get(slot.index()).unwrap_or(&UNSET)
    }

    /// Assigns a typed value.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) {
        *self.place(slot) = Variable::Value(value);
    }

    /// Assigns text, as `-D`, `\gset`, `\aset` and `\setshell` do.
    pub fn set_text(&mut self, slot: Slot, text: &str) {
        match self.place(slot) {
            Variable::Text(old) => {
                old.clear();
                old.push_str(text);
            }
            other => *other = Variable::Text(text.to_owned()),
        }
    }

    /// True if the variable has a value, which may be `NULL`.
    pub fn is_set(&self, slot: Slot) -> bool {
        !matches!(self.get(slot), Variable::Unset)
    }

    /// Appends the text that pgbench substitutes. Returns false, without appending, if the variable
    /// is unset.
    pub fn write_text(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        match self.get(slot) {
            Variable::Unset => false,
            Variable::Value(value) => {
                value.write_text(out);
                true
            }
            Variable::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                true
            }
        }
    }

    /// The value as an expression sees it; text is read as `NULL`, a boolean, an integer or a
    /// double.
    ///
    /// # Errors
    /// If the variable is unset, or its text is none of these.
    #[inline]
    pub fn value(&self, slot: Slot, names: &Symbols) -> Result<Value, EvalError> {
        match self.slots.get(slot.index()) {
            Some(Variable::Value(value)) => Ok(*value),
            Some(Variable::Text(text)) => Value::from_text(text, || names.name(slot).to_owned()),
            Some(Variable::Unset) | None => {
                Err(EvalError::UndefinedVariable { name: names.name(slot).to_owned() })
            }
        }
    }

    fn place(&mut self, slot: Slot) -> &mut Variable {
        if slot.index() >= self.slots.len() {
            self.slots.resize(slot.index() + 1, Variable::Unset);
        }
        &mut self.slots[slot.index()]
    }
}
