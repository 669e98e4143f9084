//! What a statement reads, locks, writes and calls, by the server's own tree of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::mentions::Mentions;
use crate::node::{Node, NodeError, Object};
use crate::reader::Reader;
use crate::values::{Builtins, Value};

/// A statement as the server analysed it, before rules, views and row security are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// The relations in FROM, as targets, or anywhere else, one for each time that they are named.
    pub relations: Vec<BoundRelation>,
    /// The functions that it calls, by OID: by name, by operator, as aggregates, or by a cast.
    pub functions: BTreeSet<u32>,
    /// The operators of which the tree has no function, by OID: those of sorting, grouping and rows.
    pub operators: BTreeSet<u32>,
    /// The columns of its result.
    pub outputs: Vec<Output>,
    /// How often it mentions each column.
    pub mentions: Mentions,
    /// Its kind.
    pub command: Command,
    /// Its shape.
    pub shape: Shape,
    /// The types of its parameters and constants, and those to which it converts values by their text or as a
    /// domain, by OID.
    pub types: BTreeSet<u32>,
}

/// The kind of a statement, without its WITH queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Command {
    /// SELECT, VALUES or TABLE
    #[default]
    Query,
    /// UPDATE
    Update,
    /// INSERT
    Insert,
    /// DELETE
    Delete,
    /// MERGE
    Merge,
}

/// A column of a statement's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its type by OID, if the tree says it.
    pub of_type: Option<u32>,
    /// The column whose value it has as it is, perhaps as text: of the relation with this place in
    /// [`Bound::relations`], by its number.
    pub column: Option<(usize, i32)>,
    /// The columns that it mentions.
    pub mentions: Mentions,
    /// The function that it calls, by OID, and the arguments, if they depend on no row.
    pub call: Option<(u32, Vec<Value>)>,
}

/// The shape of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Shape {
    /// It is a query of relations and their inner joins alone, each of whose rows is one of the rows found.
    pub shows_rows: bool,
    /// It is a query whose rows are the same whatever values its result's columns have: nothing sorts, groups or
    /// compares them.
    pub any_values: bool,
    /// It has an ORDER BY.
    pub ordered: bool,
    /// It has a LIMIT or an OFFSET.
    pub limited: bool,
    /// It is a query that certainly has one row, since it finds none in relations.
    pub one_row: bool,
}

/// What an UPDATE raises by a number above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raised {
    /// The column that it sets.
    Itself,
    /// The value of a parameter, `$1` being 1.
    Parameter(usize),
}

/// A relation where a statement names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct BoundRelation {
    /// Its OID.
    pub oid: u32,
    /// The name by which the statement refers to it.
    pub alias: String,
    /// The numbers of the columns that are read; 0 is the whole row, and those of system columns are
    /// negative.
    pub read: BTreeSet<i32>,
    /// The numbers of the columns that are inserted.
    pub inserted: BTreeSet<i32>,
    /// The numbers of the columns by which ON CONFLICT finds a row. They are among those that are read.
    pub arbiter: BTreeSet<i32>,
    /// The unique index of ON CONFLICT is chosen by a condition, too.
    pub arbiter_is_partial: bool,
    /// The numbers of the columns that an UPDATE sets.
    pub updated: BTreeSet<i32>,
    /// The values that an UPDATE sets columns to, by their numbers, as far as they depend on no row.
    pub set: BTreeMap<i32, Value>,
    /// The columns that an UPDATE sets to what follows from themselves alone, as in `SET n = n + 1`, by their numbers,
    /// with the number of times that they are mentioned there.
    pub kept_up: BTreeMap<i32, usize>,
    /// The columns that an UPDATE sets to something plus a number above 0, by their numbers.
    pub raised: BTreeMap<i32, Raised>,
    /// The rows that are inserted, each with the values of columns that depend on no row. One stands for all
    /// those that a query finds.
    pub rows: Vec<BTreeMap<i32, Value>>,
    /// The rows that are inserted stand in the statement itself, which does nothing else first.
    pub lists_rows: bool,
    /// It is where the statement inserts.
    pub inserts: bool,
    /// ON CONFLICT DO NOTHING: a row that conflicts isn't inserted.
    pub skips_conflicts: bool,
    /// ON CONFLICT DO UPDATE has a condition: a row that conflicts may stay as it is.
    pub may_keep: bool,
    /// It is what the statement updates, or ON CONFLICT does.
    pub updates: bool,
    /// It is what the statement deletes from.
    pub deletes: bool,
    /// It is the target of a MERGE.
    pub merges: bool,
    /// `ONLY`: tables that inherit from it, and its partitions, aren't looked at. So it is in an INSERT.
    pub only: bool,
    /// The statement itself names it, or a part of its UNION: no part that may not be executed.
    pub top: bool,
    /// It is the target of the statement, or stands in its own FROM.
    pub own: bool,
    /// Each row of the statement's result has a row of it, if the result isn't grouped.
    pub in_result: bool,
    /// The locks that are asked for.
    pub locks: Vec<RowLock>,
    /// Which rows are found.
    pub found: FoundRows,
}

/// The conditions that each row has to meet that is found where a statement names a relation: those of WHERE and
/// of the joins around it, connected by AND.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// The values that columns have to be equal to, by their numbers, as far as they depend on no row.
    pub equal: BTreeMap<i32, Value>,
    /// The texts that the values of columns have to have: `v::text = $1`. These are among the columns of `tested`.
    pub as_text: BTreeMap<i32, Value>,
    /// The numbers of the columns in all other conditions.
    pub tested: BTreeSet<i32>,
    /// The numbers of the columns in conditions that depend on other rows, too.
    pub joined: BTreeSet<i32>,
    /// The numbers of the columns by which a query orders its rows.
    pub ordered: BTreeSet<i32>,
    /// It is alone in FROM.
    pub alone: bool,
    /// An outer join may leave it without a row.
    pub nullable: bool,
    /// True if nothing else decides: the statement is a query of this relation alone, without LIMIT, and all its
    /// conditions are in `equal`. Then each row that has these values is found.
    pub exactly: bool,
}

/// A lock of rows: `FOR UPDATE` and its weaker forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// Its strength.
    pub strength: LockStrength,
    /// What happens if a row is locked.
    pub wait: Wait,
}

/// The strength of a row lock (PostgreSQL manual, "Row-Level Locks").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    /// FOR KEY SHARE
    KeyShare,
    /// FOR SHARE
    Share,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR UPDATE
    Update,
}

/// What happens if a row is locked by another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The statement waits.
    Blocks,
    /// SKIP LOCKED
    Skips,
    /// NOWAIT
    Fails,
}

/// What isn't known of a statement's tree: it may do anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// The text isn't a tree of nodes.
    #[error("the server's tree can't be read: {0}")]
    Text(#[from] NodeError),
    /// It isn't the tree of one statement.
    #[error("the server's tree isn't that of one statement")]
    NotOne,
    /// A node that isn't known.
    #[error("the server's tree has a node {0}, which isobench doesn't know")]
    Node(String),
    /// A field that is missing, or has another form.
    #[error("field {field} of node {node} isn't as expected")]
    Field {
        /// The node.
        node: String,
        /// The field.
        field: &'static str,
    },
    /// A kind of relation, command or clause that isn't known.
    #[error("isobench doesn't know {0}")]
    Kind(&'static str),
}

impl Bound {
    /// Reads the tree of a function whose body is one statement (`pg_proc.prosqlbody`).
    ///
    /// # Errors
    /// Something of it isn't known.
    pub fn read(tree: &str, builtins: &Builtins) -> Result<Bound, Gap> {
        let tree = Node::read(tree)?;
        // A list of the statements of the body, in a list.
        let [body] = tree.elements() else { return Err(Gap::NotOne) };
        let [query] = body.elements() else { return Err(Gap::NotOne) };
        let query = query.object().filter(|object| object.name == "QUERY").ok_or(Gap::NotOne)?;
        Reader::read(query, builtins)
    }
}

pub(crate) fn field<'o>(object: &'o Object, field: &'static str) -> Result<&'o Node, Gap> {
    object.get(field).ok_or_else(|| Gap::Field { node: object.name.clone(), field })
}

pub(crate) fn number(object: &Object, name: &'static str) -> Result<i64, Gap> {
    let wrong = || Gap::Field { node: object.name.clone(), field: name };
    field(object, name)?.number().ok_or_else(wrong)
}

pub(crate) fn oid(object: &Object, name: &'static str) -> Result<u32, Gap> {
    let wrong = |_| Gap::Field { node: object.name.clone(), field: name };
    u32::try_from(number(object, name)?).map_err(wrong)
}

pub(crate) fn objects<'o>(object: &'o Object, name: &'static str) -> Result<Vec<&'o Object>, Gap> {
    let wrong = || Gap::Field { node: object.name.clone(), field: name };
    match field(object, name)? {
        Node::Null => Ok(Vec::new()),
        Node::List(elements) => elements.iter().map(|one| one.object().ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
