//! What a statement reads, locks, writes and calls, by the server's own tree of it.
//!
//! Whatever isn't known of the tree is a gap, so that nothing of a statement can be missed: a node or a kind of
//! relation that isn't listed here, or a field that should be there and isn't.

use std::collections::BTreeSet;

use crate::conditions::{found_rows, is_unlimited};
use crate::node::{Node, NodeError, Object};

/// A statement as the server analysed it, before rules, views and row security are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// The relations in FROM, as targets, or anywhere else, one for each time that they are named.
    pub relations: Vec<BoundRelation>,
    /// The functions that it calls, by OID: by name, by operator, as aggregates, or by a cast.
    pub functions: BTreeSet<u32>,
    /// The operators of which the tree has no function, by OID: those of sorting, grouping and rows.
    pub operators: BTreeSet<u32>,
    /// The types of its parameters and constants, and those to which it converts values by their text or as a
    /// domain, by OID.
    pub types: BTreeSet<u32>,
}

/// A relation where a statement names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct BoundRelation {
    /// Its OID.
    pub oid: u32,
    /// The numbers of the columns that are read; 0 is the whole row, and those of system columns are
    /// negative.
    pub read: BTreeSet<i32>,
    /// The numbers of the columns that are inserted.
    pub inserted: BTreeSet<i32>,
    /// The numbers of the columns by which ON CONFLICT finds a row. They are among those that are read.
    pub arbiter: BTreeSet<i32>,
    /// The numbers of the columns that an UPDATE sets.
    pub updated: BTreeSet<i32>,
    /// It is where the statement inserts.
    pub inserts: bool,
    /// It is what the statement updates, or ON CONFLICT does.
    pub updates: bool,
    /// It is what the statement deletes from.
    pub deletes: bool,
    /// True if its alias has other names for its columns, as in `t AS a (x, y)`.
    pub renamed: bool,
    /// The locks that are asked for.
    pub locks: Vec<RowLock>,
    /// Which rows are found.
    pub found: FoundRows,
}

/// The conditions that each row has to meet that is found where a statement names a relation: those of WHERE and
/// of the joins around it, connected by AND.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// The numbers of the columns that have to be equal to a value that depends on no row.
    pub equal: BTreeSet<i32>,
    /// The numbers of the columns in all other conditions.
    pub tested: BTreeSet<i32>,
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

/// The nodes that only have values and further nodes in them.
const PLAIN: [&str; 74] = [
    "AGGREF",
    "ALIAS",
    "ARRAY",
    "ARRAYCOERCEEXPR",
    "ARRAYEXPR",
    "BOOLEANTEST",
    "BOOLEXPR",
    "CASE",
    "CASEEXPR",
    "CASETESTEXPR",
    "CASEWHEN",
    "COALESCE",
    "COALESCEEXPR",
    "COERCETODOMAIN",
    "COERCETODOMAINVALUE",
    "COERCEVIAIO",
    "COLLATE",
    "COLLATEEXPR",
    "COMMONTABLEEXPR",
    "CONST",
    "CONVERTROWTYPEEXPR",
    "CTECYCLECLAUSE",
    "CTESEARCHCLAUSE",
    "DISTINCTEXPR",
    "FIELDSELECT",
    "FIELDSTORE",
    "FROMEXPR",
    "FUNCEXPR",
    "GROUPINGFUNC",
    "GROUPINGSET",
    "INFERENCEELEM",
    "JOINEXPR",
    "JSONBEHAVIOR",
    "JSONCONSTRUCTOREXPR",
    "JSONEXPR",
    "JSONFORMAT",
    "JSONISPREDICATE",
    "JSONRETURNING",
    "JSONVALUEEXPR",
    "MERGEACTION",
    "MERGESUPPORTFUNC",
    "MINMAX",
    "MINMAXEXPR",
    "NAMEDARGEXPR",
    "NULLIFEXPR",
    "NULLTEST",
    "ONCONFLICTEXPR",
    "OPEXPR",
    "PARAM",
    "RANGETBLENTRY",
    "RANGETBLFUNCTION",
    "RANGETBLREF",
    "RELABELTYPE",
    "RETURNINGEXPR",
    "ROW",
    "ROWCOMPARE",
    "ROWCOMPAREEXPR",
    "ROWEXPR",
    "ROWMARKCLAUSE",
    "RTE",
    "RTEPERMISSIONINFO",
    "SCALARARRAYOPEXPR",
    "SETOPERATIONSTMT",
    "SETTODEFAULT",
    "SORTGROUPCLAUSE",
    "SQLVALUEFUNCTION",
    "SUBLINK",
    "SUBSCRIPTINGREF",
    "TARGETENTRY",
    "VAR",
    "WHEN",
    "WINDOWCLAUSE",
    "WINDOWFUNC",
    "XMLEXPR",
];

/// The fields that hold a function.
const FUNCTIONS: [&str; 8] = [
    "aggfnoid",
    "endInRangeFunc",
    "funcid",
    "hashfuncid",
    "negfuncid",
    "opfuncid",
    "startInRangeFunc",
    "winfnoid",
];

/// The fields that hold operators, one or a list.
const OPERATORS: [&str; 4] = ["eqop", "opno", "opnos", "sortop"];

/// The bitmaps of columns begin with the lowest system column.
const LOWEST_COLUMN: i32 = -7;

impl Bound {
    /// Reads the tree of a function whose body is one statement (`pg_proc.prosqlbody`). `equalities` are the
    /// operators that mean equality, by OID.
    ///
    /// # Errors
    /// Something of it isn't known.
    pub fn read(tree: &str, equalities: &BTreeSet<u32>) -> Result<Bound, Gap> {
        let tree = Node::read(tree)?;
        // A list of the statements of the body, in a list.
        let [body] = tree.elements() else { return Err(Gap::NotOne) };
        let [query] = body.elements() else { return Err(Gap::NotOne) };
        let query = query.object().filter(|object| object.name == "QUERY").ok_or(Gap::NotOne)?;
        let mut reader = Reader { bound: Bound::default(), equalities, top: true };
        reader.query(query)?;
        Ok(reader.bound)
    }
}

/// A tree as it is read.
struct Reader<'e> {
    bound: Bound,
    equalities: &'e BTreeSet<u32>,
    /// What is read next is certainly executed: the statement itself, or a part of its UNION.
    top: bool,
}

impl Reader<'_> {
    fn query(&mut self, query: &Object) -> Result<(), Gap> {
        if *field(query, "utilityStmt")? != Node::Null {
            return Err(Gap::Kind("what a command does that is no query"));
        }
        let entries: Vec<&Object> = objects(query, "rtable")?;
        let permissions = match query.get("rteperminfos") {
            Some(_) => objects(query, "rteperminfos")?,
            None => Vec::new(),
        };
        let conflict = query.get("onConflict").and_then(Node::object);
        // The row that was to be inserted is like a relation, but none.
        let excluded = match conflict {
            Some(conflict) => number(conflict, "exclRelIndex")?,
            None => 0,
        };
        let target = number(query, "resultRelation")?;
        let merged = match query.get("mergeTargetRelation") {
            Some(_) => number(query, "mergeTargetRelation")?,
            None => 0,
        };
        let mut here: Vec<(i64, BoundRelation)> = Vec::new();
        for (place, entry) in (1..).zip(&entries) {
            if place != excluded
                && let Some(relation) = relation(entry, &permissions)?
            {
                here.push((place, relation));
            }
        }
        let mut found = found_rows(query, self.top, self.equalities)?;
        for (place, relation) in &mut here {
            relation.found = found.remove(place).unwrap_or_default();
        }
        if target != 0 {
            let find = |(place, _): &&mut (i64, BoundRelation)| *place == target;
            let (_, relation) = here.iter_mut().find(find).ok_or(Gap::Kind("the target of a command"))?;
            match number(query, "commandType")? {
                2 => relation.updates = true,
                3 => {
                    relation.inserts = true;
                    if let Some(conflict) = conflict {
                        relation.arbiter = arbiter(conflict)?;
                    }
                    relation.updates =
                        conflict.map(|conflict| number(conflict, "action")).transpose()? == Some(2);
                }
                4 => relation.deletes = true,
                // MERGE from version 15 on; before, no such command has a target.
                5 => (relation.inserts, relation.updates, relation.deletes) = merge(query)?,
                _ => return Err(Gap::Kind("the kind of a command")),
            }
        } else if number(query, "commandType")? != 1 || merged != 0 {
            return Err(Gap::Kind("the kind of a command"));
        }
        for mark in objects(query, "rowMarks")? {
            let place = number(mark, "rti")?;
            // Of a subquery, the locks are in it, too.
            if let Some((_, relation)) = here.iter_mut().find(|(known, _)| *known == place) {
                relation.locks.push(lock(mark)?);
            }
        }
        self.bound.relations.extend(here.into_iter().map(|(_, relation)| relation));
        let united = query.get("setOperations").is_some_and(|operations| *operations != Node::Null);
        let top = self.top;
        let parts_are_executed = top && united && is_unlimited(query);
        for (name, value) in &query.fields {
            self.top = parts_are_executed && name == "rtable";
            self.field(query, name, value)?;
        }
        self.top = top;
        Ok(())
    }

    fn object(&mut self, object: &Object) -> Result<(), Gap> {
        if object.name == "QUERY" {
            return self.query(object);
        }
        if PLAIN.binary_search(&object.name.as_str()).is_err() {
            return Err(Gap::Node(object.name.clone()));
        }
        match object.name.as_str() {
            "COERCEVIAIO" | "COERCETODOMAIN" => drop(self.bound.types.insert(oid(object, "resulttype")?)),
            "PARAM" => drop(self.bound.types.insert(oid(object, "paramtype")?)),
            "CONST" => drop(self.bound.types.insert(oid(object, "consttype")?)),
            _ => {}
        }
        object.fields.iter().try_for_each(|(name, value)| self.field(object, name, value))
    }

    fn field(&mut self, object: &Object, name: &str, value: &Node) -> Result<(), Gap> {
        let wrong = |field: &'static str| Gap::Field { node: object.name.clone(), field };
        if let Some(field) = FUNCTIONS.iter().find(|field| **field == name) {
            let function =
                value.number().and_then(|oid| u32::try_from(oid).ok()).ok_or_else(|| wrong(field))?;
            self.bound.functions.extend((function != 0).then_some(function));
            return Ok(());
        }
        if let Some(field) = OPERATORS.iter().find(|field| **field == name) {
            let all = match value {
                // A list of OIDs begins with a letter.
                Node::List(all) => all.get(1..).unwrap_or_default(),
                one => std::slice::from_ref(one),
            };
            // The function of an operator in an expression is in the tree.
            let beside = object.get("opfuncid").is_some_and(|function| function.number() != Some(0));
            for operator in all.iter().filter(|_| !beside) {
                let operator =
                    operator.number().and_then(|oid| u32::try_from(oid).ok()).ok_or_else(|| wrong(field))?;
                self.bound.operators.extend((operator != 0).then_some(operator));
            }
            return Ok(());
        }
        self.node(value)
    }

    fn node(&mut self, node: &Node) -> Result<(), Gap> {
        match node {
            Node::Null | Node::Token(_) => Ok(()),
            Node::List(elements) => elements.iter().try_for_each(|element| self.node(element)),
            Node::Object(object) => self.object(object),
        }
    }
}

/// What a MERGE may do: insert, update, delete.
fn merge(query: &Object) -> Result<(bool, bool, bool), Gap> {
    let mut kinds = BTreeSet::new();
    for action in objects(query, "mergeActionList")? {
        kinds.insert(number(action, "commandType")?);
    }
    Ok((kinds.contains(&3), kinds.contains(&2), kinds.contains(&4)))
}

/// The columns by which ON CONFLICT finds a row; those of expressions aren't among them.
fn arbiter(conflict: &Object) -> Result<BTreeSet<i32>, Gap> {
    let mut columns = BTreeSet::new();
    for element in objects(conflict, "arbiterElems")? {
        if let Some(column) = field(element, "expr")?.object().filter(|expression| expression.name == "VAR") {
            columns.extend(i32::try_from(number(column, "varattno")?).ok());
        }
    }
    Ok(columns)
}

/// The relation of an entry in a list of FROM; `None` if it is something else that is known.
fn relation(entry: &Object, permissions: &[&Object]) -> Result<Option<BoundRelation>, Gap> {
    if !matches!(entry.name.as_str(), "RANGETBLENTRY" | "RTE") {
        return Err(Gap::Node(entry.name.clone()));
    }
    match number(entry, "rtekind")? {
        0 => {}
        // Subqueries, joins, functions, VALUES, WITH queries, no FROM at all, and groups.
        1 | 2 | 3 | 5 | 6 | 8 | 9 => return Ok(None),
        _ => return Err(Gap::Kind("what stands in FROM")),
    }
    if *field(entry, "tablesample")? != Node::Null {
        return Err(Gap::Kind("TABLESAMPLE"));
    }
    let oid = oid(entry, "relid")?;
    // From version 16 on, the columns are in an entry of their own.
    let columns = match entry.get("perminfoindex") {
        Some(_) => {
            let place = usize::try_from(number(entry, "perminfoindex")? - 1).ok();
            let found = place.and_then(|place| permissions.get(place)).copied();
            let found = found.ok_or(Gap::Kind("the columns of a relation"))?;
            if self::oid(found, "relid")? != oid {
                return Err(Gap::Kind("the columns of a relation"));
            }
            found
        }
        None => entry,
    };
    let renamed = match field(entry, "alias")?.object() {
        Some(alias) => *field(alias, "colnames")? != Node::Null,
        None => false,
    };
    Ok(Some(BoundRelation {
        oid,
        renamed,
        read: self::columns(columns, "selectedCols")?,
        inserted: self::columns(columns, "insertedCols")?,
        updated: self::columns(columns, "updatedCols")?,
        ..BoundRelation::default()
    }))
}

fn lock(mark: &Object) -> Result<RowLock, Gap> {
    let strength = match number(mark, "strength")? {
        1 => LockStrength::KeyShare,
        2 => LockStrength::Share,
        3 => LockStrength::NoKeyUpdate,
        4 => LockStrength::Update,
        _ => return Err(Gap::Kind("a row lock")),
    };
    let wait = match number(mark, "waitPolicy")? {
        0 => Wait::Blocks,
        1 => Wait::Skips,
        2 => Wait::Fails,
        _ => return Err(Gap::Kind("a row lock")),
    };
    Ok(RowLock { strength, wait })
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

/// The columns of a bitmap such as `(b 8 9)`.
fn columns(object: &Object, name: &'static str) -> Result<BTreeSet<i32>, Gap> {
    let wrong = || Gap::Field { node: object.name.clone(), field: name };
    let Node::List(bits) = field(object, name)? else { return Err(wrong()) };
    let Some((letter, bits)) = bits.split_first() else { return Err(wrong()) };
    if letter.token() != Some("b") {
        return Err(wrong());
    }
    let column = |bit: &Node| {
        let bit = bit.number().and_then(|bit| i32::try_from(bit).ok()).ok_or_else(wrong)?;
        bit.checked_add(LOWEST_COLUMN).ok_or_else(wrong)
    };
    bits.iter().map(column).collect()
}
