//! What is seen of each statement, and what stays dark.

use std::fmt;

use isobench_sql::Unobservable;

/// What is seen of a statement, and what isn't.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenStatement {
    /// The script's name.
    pub file: String,
    /// The line on which its command starts, from 1.
    pub line: u32,
    /// The statement's place in its command, from 0.
    pub place: u32,
    /// Its text as written.
    pub text: String,
    /// True if it is sent with more output columns than written.
    pub rewritten: bool,
    /// The tables whose rows are seen.
    pub tables: Vec<SeenTable>,
    /// What isn't seen.
    pub dark: Vec<Dark>,
}

impl SeenStatement {
    /// What has to be so when it is sent for all of it to be seen, in words; `None` if all is seen
    /// anyway, or can't be.
    pub fn wholly_if(&self) -> Option<&'static str> {
        (!self.dark.is_empty() && self.dark_anyway().is_empty()).then_some("its OFFSET is 0")
    }

    /// What isn't seen, whatever the values are that it is sent with.
    pub fn dark_anyway(&self) -> Vec<Dark> {
        self.dark.iter().filter(|dark| !dark.depends_on_values()).cloned().collect()
    }

    /// What isn't seen where the values that it is sent with leave it open what it missed.
    pub fn dark_if_unsearched(&self) -> Vec<Dark> {
        let searched = self.tables.iter().filter(|table| table.searched);
        let missed =
            |table: &SeenTable| Dark::SearchBy { table: table.table.clone(), clause: Clause::Offset };
        self.dark.iter().cloned().chain(searched.map(missed)).collect()
    }
}

/// The rows of a table that a statement shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTable {
    /// The table's name.
    pub table: String,
    /// The columns of its key, for example `(w_id, d_id)`.
    pub key: String,
    /// What the statement does with the rows.
    pub access: Access,
    /// How the order of the versions is known.
    pub order: VersionOrder,
    /// True if the rows that the statement's condition didn't find are known as well.
    pub searched: bool,
}

/// What a statement does with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Reads,
    /// It writes them.
    Writes,
}

/// How the order of a row's versions is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionOrder {
    /// No version is made.
    None,
    /// By the lock that writers of the row hold until they commit.
    RowLock,
    /// The server shows the version that was replaced (PostgreSQL 18).
    OldAndNew,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        })
    }
}

impl fmt::Display for VersionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "-",
            Self::RowLock => "row lock",
            Self::OldAndNew => "OLD and NEW",
        })
    }
}

/// A reason that something of a statement isn't seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dark {
    /// The command isn't SQL as it is understood here.
    NotUnderstood,
    /// A script changes what names mean, or how values are printed.
    NamesChange {
        /// The statement's leading words.
        by: String,
    },
    /// A script prepares transactions, whose outcome isn't that of the statement.
    Prepared,
    /// The system's functions come late in the search path, or literals are read in another way.
    Session {
        /// The setting.
        setting: &'static str,
    },
    /// No such table.
    UnknownTable {
        /// The name as written.
        name: String,
    },
    /// A table's rows can't be observed.
    Table {
        /// The table.
        table: String,
        /// The reason.
        reason: Unobservable,
    },
    /// A script creates, alters or drops the table.
    Changed {
        /// The table.
        table: String,
    },
    /// Rows are read in a subquery, whose result doesn't show them.
    Subquery {
        /// The table.
        table: String,
    },
    /// Rows are read where the result can't be extended.
    Hidden {
        /// The table.
        table: String,
        /// The clause.
        clause: Clause,
    },
    /// The written rows aren't shown.
    Unshown {
        /// The table.
        table: String,
        /// The reason.
        reason: Unshown,
    },
    /// A function may read or write tables.
    Function {
        /// The function.
        name: String,
        /// True if it may write.
        writes: bool,
    },
    /// An operator's function may read or write tables.
    Operator {
        /// The operator.
        name: String,
        /// True if it may write.
        writes: bool,
    },
    /// Triggers may write to any table.
    Triggers {
        /// The table.
        table: String,
    },
    /// A column's default, or a view, calls a function that may write.
    Calls {
        /// The table or view.
        table: String,
    },
    /// Foreign keys change rows of another table.
    Cascade {
        /// The table that is written.
        table: String,
        /// The table that changes with it.
        to: String,
    },
    /// The statement may write to any table.
    Command {
        /// Its leading word.
        word: String,
    },
    /// The statement reads rows that it doesn't show.
    Reads {
        /// Its leading word.
        word: String,
    },
    /// `ROLLBACK TO` takes back what was seen.
    RollbackTo,
    /// The row that prevented an insertion isn't shown.
    Conflict {
        /// The table.
        table: String,
    },
    /// The rows that a condition didn't match aren't known.
    Search {
        /// The table.
        table: String,
        /// The condition as written.
        condition: String,
    },
    /// The statement is sent as written, because the columns that show its rows would change its plan.
    Plan {
        /// The change.
        change: String,
    },
    /// The statement is sent as written, because the server refuses the columns that show its rows.
    Refused {
        /// The server's message.
        why: String,
    },
    /// The statement is sent as written, because its plans couldn't be compared.
    Unexplained,
    /// The rows that weren't found aren't known.
    SearchBy {
        /// The table.
        table: String,
        /// What prevents it.
        clause: Clause,
    },
}

/// What may be unseen of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenRows<'d> {
    /// Reads of this table.
    ReadsOf(&'d str),
    /// Reads of any table.
    Reads,
    /// Whatever the statement does.
    All,
}

impl Dark {
    /// What it leaves unseen.
    pub fn hides(&self) -> HiddenRows<'_> {
        match self {
            Self::Subquery { table }
            | Self::Hidden { table, .. }
            | Self::Conflict { table }
            | Self::Search { table, .. }
            | Self::SearchBy { table, .. } => HiddenRows::ReadsOf(table),
            Self::Function { writes: false, .. }
            | Self::Operator { writes: false, .. }
            | Self::Reads { .. } => HiddenRows::Reads,
            _ => HiddenRows::All,
        }
    }

    /// The same for a statement whose searches are `recorded` or not: if not, nothing says afterwards which
    /// values it was sent with.
    pub(crate) fn for_any_value(&self, recorded: bool) -> Dark {
        match self {
            Self::SearchBy { table, clause: Clause::Offset } if !recorded => {
                Self::SearchBy { table: table.clone(), clause: Clause::Skipped }
            }
            other => other.clone(),
        }
    }

    /// True if the values that a statement is sent with decide. Where they leave something unseen, that
    /// is recorded.
    fn depends_on_values(&self) -> bool {
        matches!(self, Self::SearchBy { clause: Clause::Offset, .. })
    }

    /// The table to which the reads that it leaves unseen are limited; `None` if they may be of any, or
    /// if writes may be unseen.
    pub fn reads_only(&self) -> Option<&str> {
        match self.hides() {
            HiddenRows::ReadsOf(table) => Some(table),
            HiddenRows::Reads | HiddenRows::All => None,
        }
    }

    /// The table, none of whose rows are seen.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Table { table, .. } | Self::Changed { table } => Some(table),
            _ => None,
        }
    }
}

/// A clause that hides rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    /// `DISTINCT`
    Distinct,
    /// `UNION`, `INTERSECT`, `EXCEPT`
    SetOperation,
    /// `SELECT … INTO`
    Into,
    /// `WITH`, as far as the main query doesn't pass the rows on.
    With,
    /// `HAVING`
    Having,
    /// `LIMIT`, `OFFSET` or `FETCH`
    Limit,
    /// `OFFSET` with a value that isn't known before: nothing is unseen if it is 0.
    Offset,
    /// `OFFSET` with another number than 0.
    Skipped,
    /// `SKIP LOCKED`
    SkipLocked,
    /// A join
    Join,
    /// `TABLESAMPLE`
    Sample,
    /// A function that returns a set in the list of output columns.
    Set,
    /// `*` of a subquery in FROM.
    Star,
    /// A subquery in FROM whose rows aren't those of its tables.
    Derived,
    /// An alias with names of columns.
    Renamed,
    /// `ONLY`, or a partition or a child of a table.
    Part,
    /// The query of INSERT.
    InsertQuery,
    /// `GROUPING SETS`, `ROLLUP` or `CUBE`
    GroupingSets,
    /// `TABLE` or `VALUES`
    Table,
    /// A trigger that may skip rows.
    Trigger,
    /// `WITH RECURSIVE`
    Recursive,
}

/// A reason that written rows aren't shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unshown {
    /// The statement sets columns of the key.
    Key,
    /// The server's MERGE has no RETURNING.
    Merge,
    /// Inserted rows of partitioned tables have no system columns, and scripts set savepoints.
    PartitionedInSavepoint,
    /// Inserted rows of partitioned tables have no system columns.
    Partitioned,
    /// The main query may not pass the rows on.
    With,
    /// The statement can't be extended.
    Form,
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distinct => "DISTINCT",
            Self::SetOperation => "UNION, INTERSECT or EXCEPT",
            Self::Into => "INTO",
            Self::With => "WITH",
            Self::Having => "HAVING",
            Self::Limit => "LIMIT, OFFSET or FETCH",
            Self::Offset => "OFFSET, unless it is 0",
            Self::Skipped => "OFFSET",
            Self::SkipLocked => "SKIP LOCKED",
            Self::Join => "a join",
            Self::Sample => "TABLESAMPLE",
            Self::Set => "a function that returns a set",
            Self::Star => "the * of a subquery in FROM",
            Self::Derived => "a subquery in FROM",
            Self::Renamed => "an alias with names of columns",
            Self::Part => "ONLY, a partition, or a table that inherits",
            Self::InsertQuery => "the query of an INSERT",
            Self::GroupingSets => "GROUPING SETS, ROLLUP or CUBE",
            Self::Table => "TABLE or VALUES",
            Self::Trigger => "a trigger that may skip rows",
            Self::Recursive => "WITH RECURSIVE",
        })
    }
}

impl fmt::Display for Dark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUnderstood => f.write_str("not observed: the statement isn't understood"),
            Self::NamesChange { by } => write!(f, "not observed: {by} may change what names and values mean"),
            Self::Prepared => f.write_str(
                "not observed: a script has PREPARE TRANSACTION, after which it isn't known what is committed",
            ),
            Self::Session { setting } => write!(f, "not observed: {setting} has an unusual value"),
            Self::UnknownTable { name } => write!(f, "not observed: there is no table {name}"),
            Self::Table { table, reason } => write!(f, "table {table} isn't observed: {reason}"),
            Self::Changed { table } => {
                write!(f, "table {table} isn't observed: a script creates, alters or drops it")
            }
            Self::Subquery { table } => write!(f, "rows of {table} that a subquery reads"),
            Self::Hidden { table, clause } => write!(f, "rows of {table} that it reads, hidden by {clause}"),
            Self::Unshown { table, reason } => fmt_unshown(f, table, *reason),
            Self::Function { name, writes: true } => {
                write!(f, "what function {name} reads and writes: it is volatile")
            }
            Self::Function { name, writes: false } => write!(f, "what function {name} reads"),
            Self::Operator { name, writes: true } => {
                write!(f, "what operator {name} reads and writes: it is volatile")
            }
            Self::Operator { name, writes: false } => write!(f, "what operator {name} reads"),
            Self::Triggers { table } => write!(f, "what the triggers of {table} read and write"),
            Self::Calls { table } => write!(f, "what the functions that {table} calls read and write"),
            Self::Cascade { table, to } => {
                write!(f, "rows of {to} that change with those of {table} through a foreign key")
            }
            Self::Command { word } => write!(f, "what {word} reads and writes"),
            Self::Reads { word } => write!(f, "what {word} reads"),
            Self::RollbackTo => {
                f.write_str("what ROLLBACK TO takes back: the rest of the transaction isn't judged")
            }
            Self::Conflict { table } => {
                write!(f, "the row of {table} that prevents an insertion (ON CONFLICT)")
            }
            Self::Search { table, condition } => {
                write!(f, "rows of {table} that \"{condition}\" missed: the condition isn't evaluated")
            }
            Self::Plan { change } => write!(
                f,
                "any rows: it is sent as written, because its plan would change with the columns that show \
                 them ({change})"
            ),
            Self::Refused { why } => write!(
                f,
                "any rows: it is sent as written, because the server refuses the columns that show them ({why})"
            ),
            Self::Unexplained => {
                f.write_str("any rows: it is sent as written, because EXPLAIN couldn't compare its plans")
            }
            Self::SearchBy { table, clause } => {
                write!(f, "rows of {table} that it missed, because of {clause}")
            }
        }
    }
}

fn fmt_unshown(f: &mut fmt::Formatter<'_>, table: &str, reason: Unshown) -> fmt::Result {
    write!(f, "rows of {table} that it writes: ")?;
    f.write_str(match reason {
        Unshown::Key => "it sets a column of the key",
        Unshown::Merge => "MERGE has no RETURNING before PostgreSQL 17",
        Unshown::PartitionedInSavepoint => {
            "INSERT into a partitioned table doesn't show xmin, and the scripts set savepoints"
        }
        Unshown::Partitioned => "this form of INSERT into a partitioned table doesn't show xmin",
        Unshown::With => "the main query may not pass them on",
        Unshown::Form => "its form can't be extended",
    })
}
