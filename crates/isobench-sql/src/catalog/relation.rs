//! Tables, views and their parts.

use std::collections::BTreeSet;
use std::fmt;

use isobench_isolation::observed::ValueForm;

/// A table, view or other relation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, as the catalog has them")]
pub struct Relation {
    /// The OID.
    pub oid: u32,
    /// The schema.
    pub schema: String,
    /// The name.
    pub name: String,
    /// True if the name alone finds it.
    pub visible: bool,
    /// True if its name alone finds another relation.
    pub shadowed: bool,
    /// The kind.
    pub kind: RelationKind,
    /// True for a temporary table.
    pub temporary: bool,
    /// Its place among partitions, or tables that inherit.
    pub inheritance: Inheritance,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// The columns (places in `columns`) of the primary key, or of another unique, immediate, complete
    /// and valid index of columns that are NOT NULL. Empty if there is none.
    pub key: Vec<usize>,
    /// The columns of all such indexes, the key's among them.
    pub unique: Vec<Vec<usize>>,
    /// True if no other index than the key's keeps rows out.
    pub only_key: bool,
    /// Its triggers.
    pub triggers: Triggers,
    /// True if the table has rules.
    pub rules: bool,
    /// True if row-level security is enabled.
    pub row_security: bool,
    /// True if the user may read the whole table.
    pub selectable: bool,
    /// True if a column's default, or a view's query, calls a function that may write to tables.
    pub calls_writing: bool,
    /// True if writing a row may call a function that reads tables: in a default, a condition, a generated
    /// column, an index, a policy, the key of partitions, or a column's domain.
    pub calls: bool,
    /// Its conditions on rows: CHECK.
    pub checks: Vec<Check>,
    /// Its unique indexes and exclusion constraints.
    pub uniqueness: Vec<Uniqueness>,
}

/// A condition on the rows of a table: a CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The columns in it.
    pub columns: BTreeSet<String>,
    /// True if all rows are known to fulfil it.
    pub valid: bool,
}

/// An index that keeps rows out because of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniqueness {
    /// Its columns; empty if it is of expressions, or excludes by something else than equality.
    pub columns: BTreeSet<String>,
    /// True if it only has some of the rows.
    pub partial: bool,
    /// True if it may be checked as late as at COMMIT.
    pub deferrable: bool,
}

/// The kind of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// An ordinary table.
    Table,
    /// A partitioned table.
    Partitioned,
    /// A view.
    View,
    /// A materialised view.
    Materialized,
    /// A foreign table.
    Foreign,
    /// A table that isn't stored as a heap.
    Stored,
    /// A catalog, or a view of catalogs, of the system.
    System,
    /// A sequence, or anything else.
    Other,
}

/// The place of a table among partitions, or tables that inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inheritance {
    /// It stands alone, or is the root of partitions.
    None,
    /// It is a partition, at any depth.
    Partition {
        /// Schema and name of the outermost partitioned table.
        root: (String, String),
    },
    /// Other tables inherit from it.
    Parent,
    /// It inherits from another table.
    Child {
        /// Schema and name of the outermost ancestor.
        root: (String, String),
    },
    /// It inherits from several tables.
    Several,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Column {
    /// The number in the catalog (`attnum`).
    pub number: i32,
    /// The name.
    pub name: String,
    /// The type, as far as comparisons are understood.
    pub kind: ColumnType,
    /// True if it is computed from other columns of the row.
    pub generated: bool,
    /// True if it is never NULL.
    pub not_null: bool,
    /// True if letters in ASCII have their usual other case.
    pub plain_case: bool,
    /// True if its default gives each row a value of its own: a sequence's next, or a random UUID.
    pub fresh: bool,
    /// True if equal values are the same, as far as anybody can see.
    pub exact: bool,
    /// True if its default is the time.
    pub clock: bool,
}

/// True for the columns by which any table shows which version of a row there is (manual, "System
/// Columns").
pub fn is_system_column(name: &str) -> bool {
    matches!(name, "xmin" | "ctid")
}

/// The type of a column, as far as comparisons are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// `smallint`, `integer`, `bigint`
    Integer,
    /// `boolean`
    Boolean,
    /// `text` or `varchar` with a deterministic collation.
    Text,
    /// An enumeration.
    Enum,
    /// `uuid`
    Uuid,
    /// `numeric`
    Decimal,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Instant,
    /// Another type of which a value is NULL or not.
    Scalar,
    /// A composite type, which `IS NULL` looks into.
    Composite,
}

/// A function of users that is called, or that a trigger runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The function, by OID.
    pub function: u32,
    /// The table whose rows a trigger gives it, by OID; 0 if it is called.
    pub table: u32,
}

/// What the triggers of a table may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggers {
    /// The events that fire triggers of users which may read or write tables.
    pub unknown: Events,
    /// The events that fire triggers before the row is written, which may skip it, or change it in a way
    /// that isn't known.
    pub before_row: Events,
    /// The columns to which other triggers give a value before a row is inserted.
    pub on_insert: BTreeSet<String>,
    /// The same before a row is updated.
    pub on_update: BTreeSet<String>,
    /// The columns that these triggers read.
    pub reads: BTreeSet<String>,
    /// They may read all columns.
    pub reads_row: bool,
    /// What they run, as far as that does more.
    pub runs: BTreeSet<Run>,
    /// Some of what they run can't be read, or isn't run with the statement.
    pub opaque: bool,
}

/// Events that fire triggers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// INSERT.
    pub insert: bool,
    /// UPDATE.
    pub update: bool,
    /// DELETE.
    pub delete: bool,
}

impl Triggers {
    /// Adds those of another table.
    pub(super) fn add(&mut self, other: &Triggers) {
        self.unknown.add(other.unknown);
        self.before_row.add(other.before_row);
        self.on_insert.extend(other.on_insert.iter().cloned());
        self.on_update.extend(other.on_update.iter().cloned());
        self.reads.extend(other.reads.iter().cloned());
        self.reads_row |= other.reads_row;
        self.runs.extend(&other.runs);
        self.opaque |= other.opaque;
    }

    /// True if a row has the values that an INSERT gives it.
    pub fn inserts_as_given(&self) -> bool {
        !self.before_row.insert && self.on_insert.is_empty()
    }

    /// True if it isn't known what an event does to the row, or to others.
    pub fn may(&self, event: impl Fn(Events) -> bool) -> bool {
        event(self.unknown) || event(self.before_row)
    }
}

impl Events {
    /// Adds those of another trigger.
    pub(super) fn add(&mut self, other: Events) {
        self.insert |= other.insert;
        self.update |= other.update;
        self.delete |= other.delete;
    }
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Schema and name of the table that has it.
    pub table: (String, String),
    /// The columns of that table.
    pub columns: Vec<String>,
    /// Schema and name of the table that it references.
    pub referenced: (String, String),
    /// The columns of that table.
    pub referenced_columns: Vec<String>,
    /// What becomes of the row if the referenced one is deleted.
    pub on_delete: OnChange,
    /// What becomes of the row if the referenced columns are updated.
    pub on_update: OnChange,
    /// True if all rows are known to fulfil it.
    pub valid: bool,
    /// True if it may be checked as late as at COMMIT.
    pub deferrable: bool,
}

/// What a foreign key does to its row when the referenced row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// It changes nothing (and may refuse).
    Nothing,
    /// It deletes the row, or updates its columns.
    Cascade,
    /// It sets the columns to NULL.
    Set,
    /// It sets the columns to their defaults, which are checked again.
    SetDefault,
}

/// The reason that the rows of a relation can't be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unobservable {
    /// It isn't a table.
    Kind(RelationKind),
    /// It is a temporary table.
    Temporary,
    /// No key tells its rows apart.
    NoKey,
    /// A partition, or a table that inherits from it, isn't observable.
    Member {
        /// The partition or table.
        member: String,
    },
    /// A table that inherits from it lacks its key.
    ChildKey {
        /// The table that inherits.
        child: String,
    },
    /// It inherits from several tables.
    SeveralParents,
    /// Policies hide rows.
    RowSecurity,
    /// Rules rewrite statements.
    Rules,
    /// A script changes how values of its key are printed.
    Printed,
    /// The user may not read it.
    NoRight,
}

impl fmt::Display for Unobservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(RelationKind::View) => f.write_str("it is a view"),
            Self::Kind(RelationKind::Materialized) => f.write_str("it is a materialized view"),
            Self::Kind(RelationKind::Foreign) => f.write_str("it is a foreign table"),
            Self::Kind(RelationKind::Stored) => {
                f.write_str("it isn't stored as a heap, so its rows may not show their writers")
            }
            Self::Kind(RelationKind::System) => f.write_str("it is a catalog of the system"),
            Self::Kind(_) => f.write_str("it isn't a table"),
            Self::Temporary => f.write_str("it is a temporary table"),
            Self::NoKey => {
                f.write_str("it has no primary key, nor another unique index of columns that are NOT NULL")
            }
            Self::ChildKey { child } => write!(f, "table {child}, which inherits from it, lacks its key"),
            Self::Member { member } => write!(f, "its part {member} can't be observed"),
            Self::SeveralParents => f.write_str("it inherits from several tables"),
            Self::RowSecurity => f.write_str("it has row-level security"),
            Self::Rules => f.write_str("it has rules"),
            Self::Printed => f.write_str("a script changes how its keys are printed"),
            Self::NoRight => f.write_str("showing its rows needs the SELECT right on it"),
        }
    }
}

impl ColumnType {
    /// The form in which values are compared; `None` if they aren't.
    pub fn form(self) -> Option<ValueForm> {
        Some(match self {
            Self::Integer => ValueForm::Integer,
            Self::Boolean => ValueForm::Boolean,
            Self::Text | Self::Enum => ValueForm::Text,
            Self::Uuid => ValueForm::Uuid,
            Self::Decimal => ValueForm::Decimal,
            Self::Date => ValueForm::Date,
            Self::Timestamp => ValueForm::Timestamp,
            Self::Instant => ValueForm::Instant,
            Self::Scalar | Self::Composite => return None,
        })
    }

    /// True if the order of values is that of the numbers that stand for them.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Integer | Self::Date | Self::Timestamp | Self::Instant)
    }

    /// True if the session decides how values are printed.
    fn is_printed_by_session(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Instant | Self::Scalar | Self::Composite)
    }
}

impl Relation {
    /// True if the session decides how keys are printed.
    pub fn key_depends_on_session(&self) -> bool {
        self.key.iter().any(|place| self.columns[*place].kind.is_printed_by_session())
    }

    /// The name, with its schema unless the name alone finds it, or it is in `public` and the name alone
    /// finds nothing.
    pub fn qualified(&self) -> String {
        if self.visible || self.schema == "public" && !self.shadowed {
            self.name.clone()
        } else {
            format!("{}.{}", self.schema, self.name)
        }
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names of the key's columns.
    pub fn key_names(&self) -> Vec<&str> {
        self.key.iter().map(|place| self.columns[*place].name.as_str()).collect()
    }

    /// The places of the columns of its key, and of each other unique index.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<usize>> {
        std::iter::once(&self.key).chain(&self.unique)
    }

    /// True if keys need the table's number as well, because tables inherit from it.
    pub fn has_children(&self) -> bool {
        self.inheritance == Inheritance::Parent
    }

    /// True if it stores rows itself, and not those of a partitioned table; temporary tables and the
    /// system's don't count.
    pub(super) fn stores_rows(&self) -> bool {
        let kind = !matches!(self.kind, RelationKind::View | RelationKind::System | RelationKind::Other);
        let own = !self.schema.starts_with("pg_") && self.schema != "information_schema";
        let whole = !matches!(self.inheritance, Inheritance::Partition { .. });
        kind && own && whole && !self.temporary
    }

    /// The reason that lies in the relation itself.
    pub(super) fn own_reason(&self) -> Option<Unobservable> {
        if !matches!(self.kind, RelationKind::Table | RelationKind::Partitioned) {
            Some(Unobservable::Kind(self.kind))
        } else if self.temporary {
            Some(Unobservable::Temporary)
        } else if self.inheritance == Inheritance::Several {
            Some(Unobservable::SeveralParents)
        } else if self.row_security {
            Some(Unobservable::RowSecurity)
        } else if self.rules {
            Some(Unobservable::Rules)
        } else if !self.selectable {
            Some(Unobservable::NoRight)
        } else {
            None
        }
    }
}
