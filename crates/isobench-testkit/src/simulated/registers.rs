//! A table `registers (id, version, writer)`: what a checked workload reads and writes.
//!
//! Every row from 0 on is there, with version 0 and writer 0 at first. A session sees its own
//! writes and what is committed, and nothing keeps two sessions from the same version. Two
//! statements are understood, in words like these:
//! `SELECT version, writer FROM registers WHERE id = 1`, and
//! `UPDATE registers SET version = version + 1, writer = 7 WHERE id = 1 RETURNING version`.

use std::collections::BTreeMap;

use super::statement::Kind;

/// A version of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// The row.
    pub id: i64,
    /// How often the row was written, this time included.
    pub version: u64,
    /// What the statement said.
    pub writer: i64,
}

/// What is committed.
#[derive(Debug, Default)]
pub(super) struct Registers {
    rows: BTreeMap<i64, Written>,
}

/// What a statement on the table does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    Select(i64),
    Update { id: i64, writer: i64, returning: bool },
}

impl Access {
    /// What a statement does, if it is one on the table.
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
    /// A row as a session sees it that has written this and not yet committed it.
    pub(super) fn see(&self, id: i64, own: &[Written]) -> Option<Written> {
        let own = own.iter().rev().find(|written| written.id == id);
        let seen = own.or_else(|| self.rows.get(&id)).copied();
        (id >= 0).then(|| seen.unwrap_or(Written { id, version: 0, writer: 0 }))
    }

    /// Takes over what a session has committed.
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
