//! Programs: what transactions read and write, with parameters in place of keys.
//!
//! # Which operation a statement is, in PostgreSQL
//!
//! | statement | operations |
//! |---|---|
//! | `SELECT` of one row by all columns of a unique key | [`Kind::Read`] |
//! | any other `SELECT`, also in a subquery or a join | [`Kind::Search`], with the columns of its condition among those that it reads |
//! | `SELECT … FOR UPDATE` (`FOR NO KEY UPDATE`, `FOR SHARE`, `FOR KEY SHARE`) of one row that is there | [`Kind::Lock`] |
//! | `UPDATE` of one row that is there | [`Kind::Update`]: it reads the newest version under its lock |
//! | the same of a row that may not be there | another branch, with a [`Kind::Read`] instead: what finds no row locks none |
//! | `UPDATE`, `DELETE`, `SELECT … FOR UPDATE` of other rows | a [`Kind::Search`], and an operation on any of the rows found ([`Operation::any`]), in one statement: rows are found by the statement's snapshot, and locked in their newest versions |
//! | `INSERT` | [`Kind::Insert`], with the key and whatever else is known of the row |
//! | `INSERT … ON CONFLICT DO UPDATE` | two branches: an insert, and a [`Kind::Update`] |
//! | `INSERT … ON CONFLICT DO NOTHING` | two branches: an insert, and a [`Kind::Read`] |
//! | `DELETE` of one row | [`Kind::Delete`] |
//! | `INSERT` or `UPDATE` of a row with a foreign key | also a [`Kind::Lock`] of the parent, with [`Strength::KeyShare`] |
//! | `DELETE` of a row that a foreign key refers to | also a [`Kind::Vacant`] of the rows that refer to it, or the operations of the key's action, in the newest data |
//! | a row that gets a value of a unique index | also a [`Kind::Vacant`] of the value, if a transaction may free it |
//! | what isn't understood, a trigger, a function | all of these on all its tables, with [`Columns::All`] |
//!
//! Loops are unrolled twice. All branches of a program share its level, and so their statements have
//! the same names: [`Operation::at`]. A transaction that is rolled back needs no branch.

use std::fmt;

use crate::StatementId;
use crate::columns::Columns;

/// A program: the transactions of a script, which all run at one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name, such as that of the script.
    pub name: String,
    /// The ways that a transaction can take.
    pub branches: Vec<Branch>,
}

/// A way that a transaction of a program can take: operations in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// The name, unique in the program.
    pub name: String,
    /// The operations, in the order of their execution.
    pub operations: Vec<Operation>,
    /// Pairs of variables whose values differ.
    pub distinct: Vec<(String, String)>,
    /// Pairs of variables of which the first has the lower value: they differ, too.
    pub ascending: Vec<(String, String)>,
    /// Variables that are integers, with their lowest and highest value.
    pub ranges: Vec<(String, [i64; 2])>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reads one row.
    Read,
    /// Reads all rows that a condition finds, those that aren't there included.
    Search,
    /// Locks one row and reads it.
    Lock(Strength),
    /// Changes columns of one row, and reads others or the same under the row's lock.
    Update,
    /// Inserts a row.
    Insert,
    /// Deletes one row.
    Delete,
    /// Finds that no row has these values, in the newest data at every level: the check of a unique index
    /// for a row that is written, or of a foreign key for a referenced row that goes. It only succeeds
    /// after the transaction that freed the value has committed.
    Vacant,
}

/// The strength of a row lock, the weakest first (PostgreSQL manual, "Row-Level Locks").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// `FOR KEY SHARE`: against deleting the row and changing its keys. Foreign keys take it.
    KeyShare,
    /// `FOR SHARE`: against any change.
    Share,
    /// `FOR NO KEY UPDATE`, and `UPDATE` of columns that aren't keys: also against each other.
    NoKeyUpdate,
    /// `FOR UPDATE`, `DELETE`, and `UPDATE` of keys: also against `FOR KEY SHARE`.
    Update,
}

impl fmt::Display for Kind {
    /// Writes "read", "search", "lock (FOR SHARE)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Read => f.write_str("read"),
            Kind::Search => f.write_str("search"),
            Kind::Lock(strength) => write!(f, "lock ({})", strength.clause()),
            Kind::Update => f.write_str("update"),
            Kind::Insert => f.write_str("insert"),
            Kind::Delete => f.write_str("deletion"),
            Kind::Vacant => f.write_str("check that no row is there"),
        }
    }
}

impl Kind {
    /// True for what reads rows without a lock, or with one that other readers share.
    pub const fn takes_stronger_lock(self) -> bool {
        matches!(self, Kind::Read | Kind::Search | Kind::Lock(Strength::KeyShare | Strength::Share))
    }
}

impl Strength {
    /// The clause of `SELECT`.
    pub const fn clause(self) -> &'static str {
        match self {
            Strength::KeyShare => "FOR KEY SHARE",
            Strength::Share => "FOR SHARE",
            Strength::NoKeyUpdate => "FOR NO KEY UPDATE",
            Strength::Update => "FOR UPDATE",
        }
    }

    /// True if two transactions can't have these locks of a row at once.
    pub const fn conflicts(self, other: Strength) -> bool {
        let (weaker, stronger) = if (self as u8) < other as u8 { (self, other) } else { (other, self) };
        match weaker {
            Strength::KeyShare => matches!(stronger, Strength::Update),
            Strength::Share => matches!(stronger, Strength::NoKeyUpdate | Strength::Update),
            Strength::NoKeyUpdate | Strength::Update => true,
        }
    }
}

/// What a column of a row is known to be equal to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// The value of a variable of the transaction.
    Variable(String),
    /// A constant, as written.
    Constant(String),
    /// Something that isn't known.
    Unknown,
}

impl Term {
    /// Reads `:name` as a variable, `?` as unknown, and anything else as a constant.
    pub fn of(text: &str) -> Term {
        match text.strip_prefix(':') {
            Some(name) => Term::Variable(name.to_owned()),
            None if text == "?" => Term::Unknown,
            None => Term::Constant(text.to_owned()),
        }
    }
}

/// An operation on one row of a table, or on those that a condition finds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// The table.
    pub table: String,
    /// The columns of a unique key of the row with their values, in any order; empty if it isn't
    /// known to be one row, or which one.
    pub key: Vec<(String, Term)>,
    /// Other columns of the row, or of all rows that are found, with their values. Each condition of
    /// a search that isn't an equality has an entry as well, which is unknown.
    pub known: Vec<(String, Term)>,
    /// The columns whose values it depends on.
    pub reads: Columns,
    /// The columns that it changes. Inserts and deletions change all.
    pub writes: Columns,
    /// True if it changes columns of a key that a foreign key may refer to.
    pub changes_key: bool,
    /// The number of its statement in the branch, ascending. The plain reads of a statement are at one
    /// instant, before its locks.
    pub statement: usize,
    /// Its statement: the same in all branches that have it.
    pub at: StatementId,
    /// True if it reads the newest data whatever the level, after the plain reads of its statement: the
    /// server's own checks and actions of foreign keys (`ri_triggers.c`, `detectNewRows`).
    pub newest: bool,
    /// True if the server certainly executes it, so that predicate locks of serializable transactions
    /// cover all that it finds.
    pub certain: bool,
    /// True if a read of one row certainly finds it: only then its lock is certainly taken.
    pub found: bool,
    /// The lock that its transaction certainly has of each row that it finds, or gets in the same statement, which
    /// then sees the rows as they are under the lock. No row comes to what it finds.
    pub held: Option<Strength>,
    /// False if it passes over rows that others have locked, so that it never waits.
    pub waits: bool,
}

/// Columns with what they are equal to.
fn equalities<const N: usize>(columns: [(&str, &str); N]) -> Vec<(String, Term)> {
    columns.into_iter().map(|(column, term)| (column.to_owned(), Term::of(term))).collect()
}

impl Operation {
    fn of(kind: Kind, table: &str, key: Vec<(String, Term)>, reads: Columns, writes: Columns) -> Operation {
        let (table, known) = (table.to_owned(), Vec::new());
        Operation {
            kind,
            table,
            key,
            known,
            reads,
            writes,
            changes_key: false,
            statement: 0,
            at: StatementId::default(),
            newest: kind == Kind::Vacant,
            certain: true,
            found: true,
            held: None,
            waits: true,
        }
    }

    /// Reads columns of the row with this key. Terms are written as for [`Term::of`].
    pub fn read<const N: usize>(table: &str, key: [(&str, &str); N], reads: impl Into<Columns>) -> Operation {
        Operation::of(Kind::Read, table, equalities(key), reads.into(), Columns::NONE)
    }

    /// Reads columns of all rows that have these values.
    pub fn search<const N: usize>(
        table: &str,
        known: [(&str, &str); N],
        reads: impl Into<Columns>,
    ) -> Operation {
        let search = Operation::of(Kind::Search, table, Vec::new(), reads.into(), Columns::NONE);
        Operation { known: equalities(known), ..search }
    }

    /// Locks the row with this key and reads columns of it.
    pub fn lock<const N: usize>(
        strength: Strength,
        table: &str,
        key: [(&str, &str); N],
        reads: impl Into<Columns>,
    ) -> Operation {
        Operation::of(Kind::Lock(strength), table, equalities(key), reads.into(), Columns::NONE)
    }

    /// Changes columns of the row with this key, and reads columns of it at once.
    pub fn update<const N: usize>(
        table: &str,
        key: [(&str, &str); N],
        reads: impl Into<Columns>,
        writes: impl Into<Columns>,
    ) -> Operation {
        Operation::of(Kind::Update, table, equalities(key), reads.into(), writes.into())
    }

    /// Inserts the row with this key; without one, a row whose key nothing else knows.
    pub fn insert<const N: usize>(table: &str, key: [(&str, &str); N]) -> Operation {
        Operation::of(Kind::Insert, table, equalities(key), Columns::NONE, Columns::All)
    }

    /// Deletes the row with this key.
    pub fn delete<const N: usize>(table: &str, key: [(&str, &str); N]) -> Operation {
        Operation::of(Kind::Delete, table, equalities(key), Columns::NONE, Columns::All)
    }

    /// Finds that no row has these values.
    pub fn vacant<const N: usize>(table: &str, known: [(&str, &str); N]) -> Operation {
        let columns: Vec<&str> = known.iter().map(|(column, _)| *column).collect();
        let vacant = Operation::of(Kind::Vacant, table, Vec::new(), columns.as_slice().into(), Columns::NONE);
        Operation { known: equalities(known), ..vacant }
    }

    /// The same of rows on which the transaction has this lock.
    #[must_use]
    pub fn under(self, lock: Strength) -> Operation {
        Operation { held: Some(lock), ..self }
    }

    /// The same in the newest data, whatever the level.
    #[must_use]
    pub fn in_newest_data(self) -> Operation {
        Operation { newest: true, ..self }
    }

    /// The same on a row of which only these values are known, not its key.
    #[must_use]
    pub fn any<const N: usize>(self, known: [(&str, &str); N]) -> Operation {
        Operation { key: Vec::new(), known: equalities(known), ..self }
    }

    /// The same, of which these values are known as well.
    #[must_use]
    pub fn knowing<const N: usize>(self, known: [(&str, &str); N]) -> Operation {
        Operation { known: equalities(known), ..self }
    }

    /// The same as part of this statement.
    #[must_use]
    pub fn in_statement(self, at: impl Into<StatementId>) -> Operation {
        Operation { at: at.into(), ..self }
    }

    /// The strongest row lock that it may take.
    pub fn strength(&self) -> Option<Strength> {
        match self.kind {
            Kind::Update if self.changes_key => Some(Strength::Update),
            _ => self.certain_strength(),
        }
    }

    /// The row lock that it certainly takes. An UPDATE that gives a key the value that it has already
    /// takes the lock of other columns (PostgreSQL manual, "Row-Level Locks").
    pub fn certain_strength(&self) -> Option<Strength> {
        match self.kind {
            Kind::Read | Kind::Search | Kind::Vacant => None,
            Kind::Lock(strength) => Some(strength),
            Kind::Update => Some(Strength::NoKeyUpdate),
            Kind::Insert | Kind::Delete => Some(Strength::Update),
        }
    }
}

impl Branch {
    /// Operations in order. Those next to each other with the same name of a statement, if it isn't
    /// empty, are of one statement.
    pub fn new(name: &str, operations: Vec<Operation>) -> Branch {
        let mut branch = Branch { name: name.to_owned(), operations, ..Branch::default() };
        let mut number = 0;
        for place in 1..branch.operations.len() {
            let [before, this] = &mut branch.operations[place - 1..=place] else { continue };
            number += usize::from(this.at.is_unnamed() || before.at != this.at);
            this.statement = number;
        }
        branch
    }

    /// The same, where these variables have different values.
    #[must_use]
    pub fn with_distinct(mut self, one: &str, other: &str) -> Branch {
        self.distinct.push((one.to_owned(), other.to_owned()));
        self
    }

    /// The same, where the first of these variables has the lower value.
    #[must_use]
    pub fn with_ascending(mut self, lower: &str, higher: &str) -> Branch {
        self.ascending.push((lower.to_owned(), higher.to_owned()));
        self
    }

    /// The same, where a variable is an integer from `lowest` to `highest`.
    #[must_use]
    pub fn with_range(mut self, variable: &str, [lowest, highest]: [i64; 2]) -> Branch {
        self.ranges.push((variable.to_owned(), [lowest, highest]));
        self
    }
}

impl Program {
    /// A program with these branches.
    pub fn new(name: &str, branches: Vec<Branch>) -> Program {
        Program { name: name.to_owned(), branches }
    }

    /// True if it takes locks by which others of the same kind wait for each other, or for writers, other
    /// than for foreign keys.
    pub fn locks(&self) -> bool {
        let mut operations = self.branches.iter().flat_map(|branch| &branch.operations);
        operations
            .any(|operation| matches!(operation.kind, Kind::Lock(strength) if strength > Strength::KeyShare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL manual, "Conflicting Row-Level Locks".
    #[test]
    fn locks_conflict_as_in_the_manual() {
        let all = [Strength::KeyShare, Strength::Share, Strength::NoKeyUpdate, Strength::Update];
        let rows = all.map(|one| all.map(|other| if one.conflicts(other) { 'X' } else { '.' }));
        let rows = rows.map(|row| row.iter().collect::<String>());
        assert_eq!(rows, ["...X", "..XX", ".XXX", "XXXX"]);
    }
}
