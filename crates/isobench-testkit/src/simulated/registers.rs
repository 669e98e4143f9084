//! A table `registers (id, version, writer)`, which a checked workload reads and writes.
//!
//! All rows from 0 on exist, initially with version 0 and writer 0. A session sees its own writes
//! and committed ones, and two sessions can write the same version. Two forms of statements are
//! supported:
//! `SELECT version, writer FROM registers WHERE id = 1`, and
//! `UPDATE registers SET version = version + 1, writer = 7 WHERE id = 1 RETURNING version`.

use std::collections::BTreeMap;

use super::statement::Kind;

/// A version of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// The row.
    pub id: i64,
    /// The number of writes to the row, including this one.
    pub version: u64,
    /// The writer given in the statement.
    pub writer: i64,
}

/// The committed state.
#[derive(Debug, Default)]
pub(super) struct Registers {
    rows: BTreeMap<i64, Written>,
}

/// The access of a statement to the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    Select(i64),
    Update { id: i64, writer: i64, returning: bool },
}

impl Access {
    /// The access of a statement, if it is one to the table.
    pub(super) fn of(kind: Kind, sql: &str) -> Option<Access> {
        if !sql.contains(" registers ") {
            return None;
        }
        let id = number_after(sql, " id = ")?;
        match kind {
            Kind::Select => Some(Access::Select(id)),
            Kind::Update => {
                let writer = number_after(sql, " writer = ")?;
                Some(Access::Update { id, writer, returning: sql.contains("RETURNING version") })
            }
            _ => None,
        }
    }
}

impl Registers {
    /// A row as seen by a session with these uncommitted writes.
    pub(super) fn see(&self, id: i64, own: &[Written]) -> Option<Written> {
        let own = own.iter().rev().find(|written| written.id == id);
        let seen = own.or_else(|| self.rows.get(&id)).copied();
        (id >= 0).then(|| seen.unwrap_or(Written { id, version: 0, writer: 0 }))
    }

    /// Applies the writes committed by a session.
    pub(super) fn commit(&mut self, writes: &[Written]) {
        self.rows.extend(writes.iter().map(|written| (written.id, *written)));
    }
}

fn number_after(sql: &str, words: &str) -> Option<i64> {
    let (_, rest) = sql.split_once(words)?;
    rest.split(|letter: char| letter != '-' && !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_understood() {
        let access = Access::of(Kind::Select, "SELECT version, writer FROM registers WHERE id = -7");
        assert_eq!(access, Some(Access::Select(-7)));
        let update = "UPDATE registers SET version = version + 1, writer = 12 WHERE id = 3 RETURNING version";
        let access = Access::of(Kind::Update, update);
        assert_eq!(access, Some(Access::Update { id: 3, writer: 12, returning: true }));
        assert_eq!(Access::of(Kind::Update, "UPDATE t SET v = 1 WHERE id = 3"), None);
    }

    #[test]
    fn a_session_sees_its_own_writes_first() {
        let mut registers = Registers::default();
        registers.commit(&[Written { id: 1, version: 1, writer: 5 }]);
        let own = [Written { id: 1, version: 2, writer: 6 }];
        assert_eq!(registers.see(1, &own), Some(own[0]));
        assert_eq!(registers.see(1, &[]).map(|row| row.writer), Some(5));
        assert_eq!(registers.see(2, &own).map(|row| row.version), Some(0));
        assert_eq!(registers.see(-1, &own), None);
    }
}
