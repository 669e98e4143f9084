//! What the server's catalogs say of the tables, functions and names that scripts use.

mod body;
mod hidden;
mod load;
mod queries;
mod reading;
mod relation;
mod routines;
mod trigger;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Bound, Builtins, Reading};

pub use hidden::Hidden;
pub use hidden::Hides;
pub use reading::changes_with_others;
pub use relation::is_system_column;
pub use relation::{
    Check, Column, ColumnType, Events, ForeignKey, Inheritance, OnChange, Relation, RelationKind, Run,
    Triggers, Uniqueness, Unobservable,
};
pub use routines::Routines;

/// The index of a relation in a [`Catalog`].
pub type RelationId = usize;

/// The tables, functions and settings of a session, as far as they decide what its statements mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The server's `server_version_num`, for example 180004.
    pub version: u32,
    /// The schemas that are searched for unqualified names, in order: `current_schemas(true)`.
    pub search_path: Vec<String>,
    /// False if a backslash escapes in plain literals (`standard_conforming_strings` is off).
    pub standard_strings: bool,
    /// The tables, views and other relations of all schemas, in order of schema and name.
    pub relations: Vec<Relation>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// The functions by name: those of users, and those of the system that aren't plain (aggregates,
    /// window functions, functions that return sets).
    pub functions: BTreeMap<String, FunctionFacts>,
    /// The operators of users whose functions may write.
    pub writing_operators: BTreeSet<String>,
    /// The operators of users: their functions may read tables.
    pub operators: BTreeSet<String>,
    /// What may read or write tables where it is called, by OID.
    pub called: Called,
    /// The server's own operators and functions as far as their meaning matters.
    pub builtins: Builtins,
    /// The values of variables are sent as parameters. Otherwise they are a part of the text, of which they may be any
    /// part where they stand outside of quotes.
    pub sends_parameters: bool,
    /// The texts of code that isn't analysed.
    pub hidden: Hidden,
    /// Something of users by which the system's words may mean something else: an operator, an operator class, a
    /// cast or a function.
    pub standing_in: Option<String>,
    /// Statements as the server reads them, by their texts with `$1`, `$2`, …; or why it doesn't.
    pub readings: BTreeMap<String, Result<Bound, Reading>>,
    /// The functions of users whose bodies may be read.
    pub routines: Routines,
}

/// Functions, and what calls them: their names by OID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Called {
    /// Functions of users, and of the system if they may do more than compute a value.
    pub functions: BTreeMap<u32, String>,
    /// Operators of users.
    pub operators: BTreeMap<u32, String>,
    /// Types of users that call functions where a value becomes one of theirs: domains with conditions or
    /// defaults, types with such parts, and types with input and output functions of users.
    pub types: BTreeMap<u32, String>,
}

/// What is known of all functions with one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, as the catalog has them")]
pub struct FunctionFacts {
    /// One of them is an aggregate.
    pub aggregate: bool,
    /// One of them returns a set.
    pub set: bool,
    /// One of them may write to tables: it is volatile, and not the system's own.
    pub writes: bool,
    /// One of them may read tables: it isn't the system's own.
    pub reads: bool,
    /// One of them is neither an aggregate nor a window function.
    pub plain: bool,
}

/// Functions of the system that execute SQL given as text or by a table's name.
const READERS: [&str; 16] = [
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
];

/// Aggregates that are syntax, not functions of the catalog (PostgreSQL 16).
const AGGREGATES: [&str; 2] = ["json_arrayagg", "json_objectagg"];

impl Catalog {
    /// True if the server shows the version that an UPDATE replaced: `old.xmin` in RETURNING.
    pub fn shows_old(&self) -> bool {
        self.version >= 180_000
    }

    /// True if MERGE has RETURNING.
    pub fn merge_returns(&self) -> bool {
        self.version >= 170_000
    }

    /// The facts of the functions with a name.
    pub fn function(&self, name: &str) -> FunctionFacts {
        let mut facts = self.functions.get(name).copied().unwrap_or_default();
        facts.aggregate |= AGGREGATES.contains(&name);
        facts.reads |= READERS.contains(&name);
        facts
    }

    /// The relation that a name denotes; `None` if there is none.
    pub fn resolve(&self, schema: Option<&str>, name: &str) -> Option<RelationId> {
        let find = |schema: &str| {
            self.relations
                .binary_search_by(|relation| {
                    (relation.schema.as_str(), relation.name.as_str()).cmp(&(schema, name))
                })
                .ok()
        };
        match schema {
            Some(schema) => find(schema),
            None => self.search_path.iter().find_map(|schema| find(schema)),
        }
    }

    /// True if equal values of a column are the same: not so of numbers like 1.0 and 1.00, of texts whose letters' case
    /// doesn't count, and of other types.
    pub fn equal_is_same(&self, relation: RelationId, column: &str) -> bool {
        let relation = &self.relations[relation];
        // Of texts and the like NULL and '' are the same value of a variable.
        let has_empty = |kind: ColumnType| matches!(kind, ColumnType::Text | ColumnType::Scalar);
        let exact = |column: &Column| column.exact && (column.not_null || !has_empty(column.kind));
        is_system_column(column) || relation.column(column).is_some_and(|at| exact(&relation.columns[at]))
    }

    /// True if the system's own functions, operators and types can't be hidden by users' ones.
    pub fn system_first(&self) -> bool {
        self.search_path
            .iter()
            .find(|schema| !schema.starts_with("pg_temp"))
            .is_none_or(|schema| schema == "pg_catalog")
    }

    /// The table whose rows a relation's rows are: the root of its partitions or ancestors.
    pub fn root(&self, relation: RelationId) -> RelationId {
        match &self.relations[relation].inheritance {
            Inheritance::Partition { root } | Inheritance::Child { root } => {
                self.resolve(Some(&root.0), &root.1).unwrap_or(relation)
            }
            _ => relation,
        }
    }

    /// The triggers of a table, with those of its partitions and of the tables that inherit from it.
    pub fn triggers(&self, table: RelationId) -> Triggers {
        let root = self.root(table);
        let mut all = Triggers::default();
        for id in (0..self.relations.len()).filter(|id| self.root(*id) == root) {
            all.add(&self.relations[id].triggers);
        }
        all
    }

    /// A table, with its partitions and the tables that inherit from it.
    pub fn members(&self, table: RelationId) -> impl Iterator<Item = &Relation> {
        let root = self.root(table);
        let member = move |id: &RelationId| self.root(*id) == root;
        (0..self.relations.len()).filter(member).map(|id| &self.relations[id])
    }

    /// The names of the relations that store rows, as [`SeenTable::table`](crate::SeenTable::table) has
    /// them: without partitions, whose rows are those of their partitioned tables, temporary tables and
    /// the system's.
    pub fn stored(&self) -> impl Iterator<Item = String> {
        self.relations.iter().filter(|relation| relation.stores_rows()).map(Relation::qualified)
    }

    /// The schema and the name of the relation with this name in [`Catalog::stored`], or in what is seen.
    pub fn place_of(&self, name: &str) -> Option<(&str, &str)> {
        let relation = self.relations.iter().find(|relation| relation.qualified() == name)?;
        Some((&relation.schema, &relation.name))
    }

    /// The name in [`Catalog::stored`] of the only relation that stores the rows of the one with this
    /// name; `None` if there are several, or none.
    pub fn stored_in(&self, name: &str) -> Option<String> {
        let place = self.relations.iter().position(|relation| relation.qualified() == name)?;
        self.storing(place).map(Relation::qualified)
    }

    /// The only relation that stores the rows of another one.
    pub fn storing(&self, relation: RelationId) -> Option<&Relation> {
        match self.relations[relation].inheritance {
            Inheritance::None => Some(&self.relations[relation]).filter(|relation| relation.stores_rows()),
            Inheritance::Partition { .. } => Some(&self.relations[self.root(relation)]),
            Inheritance::Parent | Inheritance::Child { .. } | Inheritance::Several => None,
        }
    }

    /// Why the rows of a relation can't be observed; `None` if they can.
    pub fn unobservable(&self, relation: RelationId) -> Option<Unobservable> {
        let named = &self.relations[relation];
        let root = &self.relations[self.root(relation)];
        if let Some(reason) = named.own_reason().or_else(|| root.own_reason()) {
            return Some(reason);
        }
        if root.key.is_empty() {
            return Some(Unobservable::NoKey);
        }
        let own_names = root.key_names();
        self.relations.iter().find_map(|member| match &member.inheritance {
            Inheritance::Child { root: name } | Inheritance::Partition { root: name }
                if (&name.0, &name.1) == (&root.schema, &root.name) =>
            {
                if !matches!(member.kind, RelationKind::Table | RelationKind::Partitioned) {
                    return Some(Unobservable::Member { member: member.qualified() });
                }
                // Otherwise two rows of the child may have the same key.
                let child = matches!(member.inheritance, Inheritance::Child { .. });
                let differs = child && member.key_names() != own_names;
                differs.then(|| Unobservable::ChildKey { child: member.qualified() })
            }
            _ => None,
        })
    }

    /// The tables in which rows change when rows of `relation` are deleted, or when its `columns` are
    /// updated (`None`: deleted).
    pub fn cascades(&self, relation: RelationId, columns: Option<&BTreeSet<String>>) -> BTreeSet<RelationId> {
        // A table may be found again by another key, which changes more of it.
        let mut found: BTreeSet<(RelationId, Option<BTreeSet<String>>)> = BTreeSet::new();
        let mut queue = vec![(self.root(relation), columns.cloned())];
        while let Some((target, columns)) = queue.pop() {
            for key in &self.foreign_keys {
                let Some((referenced, referencing)) = self.ends(key) else { continue };
                let action = match &columns {
                    None => key.on_delete,
                    Some(columns) if key.referenced_columns.iter().any(|name| columns.contains(name)) => {
                        key.on_update
                    }
                    Some(_) => OnChange::Nothing,
                };
                if referenced != target || action == OnChange::Nothing {
                    continue;
                }
                let deletes = columns.is_none() && action == OnChange::Cascade;
                let changed = (referencing, (!deletes).then(|| key.columns.iter().cloned().collect()));
                if found.insert(changed.clone()) {
                    queue.push(changed);
                }
            }
        }
        found.into_iter().map(|(table, _)| table).collect()
    }

    /// The tables of a foreign key: the one that it refers to, and the one that has it.
    pub fn ends(&self, key: &ForeignKey) -> Option<(RelationId, RelationId)> {
        let find = |name: &(String, String)| self.resolve(Some(&name.0), &name.1).map(|id| self.root(id));
        Some((find(&key.referenced)?, find(&key.table)?))
    }
}
