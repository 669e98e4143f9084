//! Keys of Elle's histories as rows: integers are rows of one table, and each name is a table with
//! one row.

use std::collections::HashMap;

use super::super::{History, Key, MOST_TABLES};
use super::{LISTS, REGISTERS};

/// The number of names that get their own tables.
const MOST_NAMES: usize = 60_000;

/// The table of all further names.
const OTHER: &str = "other keys";

const _: () = assert!(MOST_NAMES + 2 <= MOST_TABLES);

/// The names so far.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<String, Key>,
    /// The names, in the order of their tables, which are numbered from 1.
    tables: Vec<String>,
}

impl Names {
    /// The row of an integer key.
    pub fn numbered(id: i64) -> Key {
        Key { table: 0, id }
    }

    /// The row of a name.
    pub fn named(&mut self, name: &str) -> Key {
        if let Some(key) = self.known.get(name) {
            return *key;
        }
        let further = (self.known.len() + 1).saturating_sub(MOST_NAMES);
        if further == 0 {
            self.tables.push(name.to_owned());
        } else if further == 1 {
            self.tables.push(OTHER.to_owned());
        }
        let table = u16::try_from(self.tables.len()).unwrap_or(u16::MAX);
        let key = Key { table, id: i64::try_from(further).unwrap_or(i64::MAX) };
        self.known.insert(name.to_owned(), key);
        key
    }

    /// An empty history with the tables of all names.
    pub fn name_tables(self, lists: bool, history: &mut History) {
        let main = if lists { LISTS } else { REGISTERS };
        // A key of this name takes precedence, because the name of the table wasn't chosen by the
        // user.
        let taken = |name: &str| self.known.contains_key(name);
        let mut main = main.to_owned();
        while taken(&main) {
            main.push('_');
        }
        history.set_tables(std::iter::once(main).chain(self.tables).collect());
    }
}
