//! Sets of columns of a table.

use std::collections::BTreeSet;

/// Columns of a table that an operation reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Columns {
    /// These.
    These(BTreeSet<String>),
    /// All, also those that aren't known.
    All,
}

impl Columns {
    /// No columns.
    pub const NONE: Columns = Columns::These(BTreeSet::new());

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Columns::These(these) if these.is_empty())
    }
}

impl<'a, const N: usize> From<[&'a str; N]> for Columns {
    fn from(names: [&'a str; N]) -> Columns {
        Columns::from(names.as_slice())
    }
}

impl<'a> From<&[&'a str]> for Columns {
    fn from(names: &[&'a str]) -> Columns {
        Columns::These(names.iter().map(|name| (*name).to_owned()).collect())
    }
}
