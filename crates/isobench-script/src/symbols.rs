//! Interned variable names, shared by all scripts of a run; `variables` holds the values.

use std::collections::HashMap;

/// The index of a variable, valid for every client of the run.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Slot(u32);

impl Slot {
    /// The index as a number, from 0 to [`Symbols::len`] − 1.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Interned variable names shared by all scripts of a run.
///
/// A variable belongs to the client, not to the script, so all scripts of a run are parsed with the
/// same table. A name that no script mentions needs no slot, because nothing reads it.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<Entry>,
    slots: HashMap<Box<str>, Slot>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Box<str>,
    assignable: bool,
}

impl Symbols {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The slot of `name`, added if it is new.
    ///
    /// # Panics
    /// If there are more than 2^32 different names.
    pub fn intern(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = Slot(u32::try_from(self.names.len()).expect("fewer than 2^32 variable names"));
        self.names.push(Entry { name: name.into(), assignable: is_valid_variable_name(name) });
        self.slots.insert(name.into(), slot);
        slot
    }

    /// The slot of `name`; `None` if no script or option mentions it.
    pub fn lookup(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// The name of the variable, as written in the script.
    pub fn name(&self, slot: Slot) -> &str {
        self.names.get(slot.index()).map_or("", |entry| &entry.name)
    }

    /// True if pgbench accepts an assignment to this name (`\set x-y 1` parses but fails at run
    /// time).
    pub fn is_assignable(&self, slot: Slot) -> bool {
        self.names.get(slot.index()).is_some_and(|entry| entry.assignable)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|entry| &*entry.name)
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// True if `name` can be assigned to: letters (including non-ASCII letters), digits and
/// underscores, not starting with a digit.
///
/// Source: pgbench manual, "Custom Scripts"; pgbench 15 refuses a leading digit.
pub fn is_valid_variable_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    !bytes.is_empty() && !bytes[0].is_ascii_digit() && bytes.iter().all(|byte| is_name_byte(*byte))
}

/// True if the byte can be part of a variable name.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interning_twice_gives_the_same_slot() {
        let mut symbols = Symbols::new();
        let a = symbols.intern("aid");
        let b = symbols.intern("bid");
        assert_ne!(a, b);
        assert_eq!(symbols.intern("aid"), a);
        assert_eq!(symbols.lookup("bid"), Some(b));
        assert_eq!(symbols.lookup("tid"), None);
        assert_eq!((symbols.name(b), symbols.len(), b.index()), ("bid", 2, 1));
    }

    #[test]
    fn names_follow_pgbench() {
        for good in ["a", "_1", "é", "aBc9", "変数"] {
            assert!(is_valid_variable_name(good), "{good}");
        }
        for bad in ["", "1a", "a-b", "a b", "?column?", "a?column?"] {
            assert!(!is_valid_variable_name(bad), "{bad}");
        }
        let mut symbols = Symbols::new();
        let slot = symbols.intern("x-y");
        assert!(!symbols.is_assignable(slot));
    }
}
