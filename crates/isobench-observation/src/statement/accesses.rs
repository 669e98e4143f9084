//! What a statement does with rows, for the question which levels transactions need: the tables that it
//! reads, locks and writes, by which key, and in which columns.
//!
//! Unlike what is shown of rows, this has to be complete rather than exact: a condition that isn't
//! understood finds any row, and a column that may be meant is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use isobench_robustness::{Columns, Strength};
use isobench_script::{Slot, TextPart};
use sqlparser::ast::{
    Assignment, AssignmentTarget, DataType, Delete, Expr, FromTable, Insert, JoinConstraint, JoinOperator,
    LockType, NonBlock, ObjectName, OnConflictAction, OnInsert, Query, Select, SetExpr, Statement,
    TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind, Value, ValueWithSpan,
};

use super::before::{joining, ordering};
use super::columns::{is_wildcard, returning};
use super::condition::{conjuncts, equalities};
use super::walk::{Node, walk};
use super::write::assigned;
use super::{Examiner, ident};
use crate::catalog::{ColumnType, OnChange, RelationId, RelationKind, Triggers, is_system_column};

/// What a statement does with the rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub table: RelationId,
    pub deed: Deed,
    /// Columns with the values that all of the rows have, or that are inserted.
    pub equal: BTreeMap<String, Operand>,
    /// Columns that an UPDATE changes, with the values that its condition requires before.
    pub before: BTreeMap<String, Operand>,
    /// The columns that its condition tests otherwise.
    pub tested: BTreeSet<String>,
    /// The columns whose values it depends on.
    pub reads: Columns,
    /// The columns that it changes.
    pub writes: Columns,
    /// It is certainly executed, for each row that has these values: nothing else decides which rows it
    /// finds.
    pub certain: bool,
    /// Columns that only become variables that nothing uses: they count only where the transaction writes
    /// nothing.
    pub idle: BTreeSet<String>,
    /// Each row of the result of an ungrouped query has a row of it.
    pub in_result: bool,
    /// It may be as late as at COMMIT: a deferrable constraint.
    pub deferrable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Read,
    Lock(Strength),
    /// The check of a foreign key, which fails if there is no row.
    Refer,
    /// The check that no row has these values: of a unique index, or of a foreign key whose row goes.
    Vacant,
    /// What the action of a foreign key does to rows that refer to one that goes.
    Cascade,
    Update,
    Insert,
    /// `ON CONFLICT DO NOTHING`.
    InsertOrRead,
    /// `ON CONFLICT DO UPDATE`.
    InsertOrUpdate,
    Delete,
}

/// A value of a column, as far as two may be known to be equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operand {
    Variable(Slot),
    /// In a form in which equal values are the same text.
    Constant(String),
    /// What follows from variables alone, with `$1`, `$2`, … in place of these.
    Computed(String, Vec<Slot>),
}

/// Why a statement's accesses aren't known.
pub(crate) type Unknown = String;

/// A table, or what is like one, in FROM.
struct Instance {
    name: Option<String>,
    relation: Option<RelationId>,
    /// Known values and tested columns, of conditions that rows of it have to meet.
    equal: BTreeMap<String, Operand>,
    tested: BTreeSet<String>,
    /// Columns that are equal to columns of other instances.
    links: Vec<(String, usize, String)>,
    /// The columns by which its rows are joined and ordered ([`super::before`]).
    joined: Columns,
    /// It is a subquery: a query that locks its rows locks those of its tables.
    subquery: bool,
    /// A condition requires something else as well, or may.
    restricted: bool,
    /// It is on the side of an outer join that may be missing.
    nullable: bool,
}

/// The columns that a statement mentions, by the name before the dot.
#[derive(Default)]
struct Mentions {
    columns: BTreeSet<(Option<String>, String)>,
    /// Of `*`, and where a whole row is meant, all.
    everything: bool,
    relations: Vec<ObjectName>,
    ctes: BTreeSet<String>,
}

impl Examiner<'_> {
    /// What the statement does with rows, reads first.
    ///
    /// # Errors
    /// It isn't known: it may read and write anything of its tables, or of all if it has none.
    pub(crate) fn accesses(&self) -> Result<Vec<Access>, Unknown> {
        self.accesses_with(false)
    }

    /// The same without what triggers of the tables that it writes may do, whatever that is.
    pub(crate) fn accesses_but_for_triggers(&self) -> Result<Vec<Access>, Unknown> {
        self.accesses_with(true)
    }

    fn accesses_with(&self, ignores_triggers: bool) -> Result<Vec<Access>, Unknown> {
        let Ok(statement) = self.parse() else { return Err("it isn't understood".to_owned()) };
        // Such strings end elsewhere for the server.
        if !self.catalog.standard_strings && self.text.written(&self.range).contains('\\') {
            return Err("backslashes are part of its strings".to_owned());
        }
        let mentions = self.mentions(&statement);
        let (strengths, found) = (self.strengths(), Vec::new());
        let top = true;
        let mut found =
            Accesses { examiner: self, mentions: &mentions, strengths, ignores_triggers, top, found };
        match &statement {
            Statement::Query(_) => {}
            other => {
                found.write(other)?;
                found.top = false;
            }
        }
        let mut failed = None;
        // Each SELECT has its own tables, wherever it stands.
        let _ = walk(&statement, &mut |node| {
            let Node::Query(query) = node else { return ControlFlow::Continue(()) };
            let done = found.body(query);
            found.top = false;
            match done {
                Ok(()) => ControlFlow::Continue(()),
                Err(why) => {
                    failed = Some(why);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(why) = failed {
            return Err(why);
        }
        let mut accesses = found.found;
        accesses.sort_by_key(|access| access.deed != Deed::Read);
        Ok(accesses)
    }

    /// The tables that a statement names.
    pub(crate) fn named_tables(&self) -> BTreeSet<RelationId> {
        let Ok(statement) = self.parse() else { return BTreeSet::new() };
        let mentions = self.mentions(&statement);
        mentions
            .relations
            .iter()
            .filter_map(|name| self.resolved(name))
            .map(|id| self.catalog.root(id))
            .collect()
    }

    fn mentions(&self, statement: &Statement) -> Mentions {
        let joined = |word: &str| self.text.tokens[self.range.clone()].iter().any(|token| token.is(word));
        let mut mentions =
            Mentions { everything: joined("natural") || joined("using"), ..Mentions::default() };
        if let Statement::Delete(delete) = statement {
            // `DELETE … USING` names tables, and joins no columns.
            mentions.everything &= delete.using.is_none();
        }
        let _ = walk(statement, &mut |node| {
            mentions.note(node);
            ControlFlow::Continue(())
        });
        mentions.everything |= returning(statement).iter().any(is_wildcard);
        mentions
    }

    /// The strengths of the row locks that a statement asks for, in order of its text.
    fn strengths(&self) -> Vec<Strength> {
        let tokens = &self.text.tokens[self.range.clone()];
        let words = |at: usize, wanted: &[&str]| {
            wanted
                .iter()
                .enumerate()
                .all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.is(word)))
        };
        let clause = |at: usize| {
            [
                (&["for", "update"][..], Strength::Update),
                (&["for", "no", "key", "update"], Strength::NoKeyUpdate),
                (&["for", "share"], Strength::Share),
                (&["for", "key", "share"], Strength::KeyShare),
            ]
            .into_iter()
            .find_map(|(wanted, strength)| words(at, wanted).then_some(strength))
        };
        (0..tokens.len()).filter_map(clause).collect()
    }
}

impl Mentions {
    fn note(&mut self, node: Node<'_>) {
        match node {
            Node::Query(query) => {
                if let Some(with) = &query.with {
                    self.ctes.extend(with.cte_tables.iter().map(|cte| ident(&cte.alias.name)));
                }
                if let SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) = &*query.body
                {
                    self.everything |= returning(inner).iter().any(is_wildcard);
                }
            }
            Node::Select(select) => self.everything |= select.projection.iter().any(is_wildcard),
            Node::Relation(name) => self.relations.push(name.clone()),
            Node::Expr(Expr::Identifier(name)) => {
                self.columns.insert((None, ident(name)));
            }
            Node::Expr(Expr::CompoundIdentifier(parts)) => {
                if let Some((last, before)) = parts.split_last() {
                    self.columns.insert((before.last().map(ident), ident(last)));
                }
            }
            Node::Expr(Expr::Wildcard(_) | Expr::QualifiedWildcard(..)) => self.everything = true,
            _ => {}
        }
    }

    /// The columns of a table, known by this name, that may be meant.
    fn of(&self, name: Option<&str>, columns: impl Fn(&str) -> bool) -> Columns {
        let whole = |name: &str| self.columns.contains(&(None, name.to_owned()));
        if self.everything || name.is_some_and(|name| whole(name) && !columns(name)) {
            return Columns::All;
        }
        let meant = self.columns.iter().filter(|(qualifier, column)| {
            qualifier.as_deref().is_none_or(|qualifier| name.is_none_or(|name| name == qualifier))
                && (columns(column) || is_system_column(column))
        });
        Columns::These(meant.map(|(_, column)| column.clone()).collect())
    }
}

/// The accesses of a statement, as they are found.
struct Accesses<'e, 'a> {
    examiner: &'e Examiner<'a>,
    mentions: &'e Mentions,
    /// Of all clauses that lock rows, in order of the text.
    strengths: Vec<Strength>,
    /// Triggers are as if they weren't there.
    ignores_triggers: bool,
    /// What is read now is the statement itself, and no part of it, which may not be executed.
    top: bool,
    found: Vec<Access>,
}

impl Accesses<'_, '_> {
    /// What a query does by itself; the queries within it are met on their own.
    fn body(&mut self, query: &Query) -> Result<(), Unknown> {
        let mut bodies = vec![&*query.body];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::Select(select) => self.select(select, query)?,
                SetExpr::SetOperation { left, right, .. } => bodies.extend([&**left, &**right]),
                // Met on its own.
                SetExpr::Query(_) | SetExpr::Values(_) => {}
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                    self.write(inner)?;
                }
                _ => return Err("it isn't understood".to_owned()),
            }
        }
        Ok(())
    }

    fn select(&mut self, select: &Select, query: &Query) -> Result<(), Unknown> {
        let mut instances = Vec::new();
        self.tables(&select.from, &mut instances)?;
        let conditions: Vec<&Expr> = select.selection.iter().collect();
        self.restrict(&mut instances, &conditions);
        for expr in select.having.iter().chain(&select.qualify) {
            self.test(&mut instances, expr);
        }
        propagate(&mut instances);
        self.order(&mut instances, select, query);
        let lock = self.lock(query)?;
        let locks =
            |instance: &Instance| lock.as_ref().is_some_and(|(of, _)| of.is_none() || *of == instance.name);
        if instances.iter().any(|instance| instance.subquery && locks(instance)) {
            return Err("isobench doesn't know which rows of a subquery it locks".to_owned());
        }
        let limited = query.limit_clause.is_some() || query.fetch.is_some();
        let certain = !limited && self.is_certain(&instances);
        for instance in &instances {
            let locked = lock.as_ref().filter(|(of, _)| of.is_none() || *of == instance.name);
            self.find(instance, locked.map(|(_, strength)| *strength), certain);
        }
        Ok(())
    }

    /// Notes the columns by which rows are ordered: who waits for one has chosen it by what it was.
    fn order(&self, instances: &mut [Instance], select: &Select, query: &Query) {
        if let [only] = &*instances
            && self.is_one_row(only)
        {
            return;
        }
        match ordering(select, query, &|column| self.column(instances, column)) {
            Some(columns) => columns.into_iter().for_each(|(at, column)| instances[at].join_by(column)),
            None => instances.iter_mut().for_each(|instance| instance.joined = Columns::All),
        }
    }

    /// True if the values that are known are those of all columns of a unique key.
    fn is_one_row(&self, instance: &Instance) -> bool {
        let Some(relation) = instance.relation.map(|id| &self.examiner.catalog.relations[id]) else {
            return false;
        };
        let known = |place: &usize| instance.equal.contains_key(&relation.columns[*place].name);
        !relation.has_children() && relation.keys().any(|key| !key.is_empty() && key.iter().all(known))
    }

    /// True if all rows of the only table that have the known values are certainly found.
    fn is_certain(&self, instances: &[Instance]) -> bool {
        self.top && matches!(instances, [only] if !only.restricted)
    }

    /// The rows that a query finds in a table, locked or not.
    fn find(&mut self, instance: &Instance, lock: Option<Strength>, certain: bool) {
        let Some(access) = self.access(instance, Deed::Read) else { return };
        let in_result = self.top && !instance.nullable;
        let access = Access { certain, in_result, ..access };
        match lock {
            Some(strength) => {
                self.read_before(instance);
                self.found.push(Access { deed: Deed::Lock(strength), ..access });
            }
            None => self.found.push(access),
        }
    }

    /// The table whose rows a query locks, if it names one, and how; `None` if it locks none.
    fn lock(&self, query: &Query) -> Result<Option<(Option<String>, Strength)>, Unknown> {
        let [lock] = query.locks.as_slice() else {
            return if query.locks.is_empty() {
                Ok(None)
            } else {
                Err("it locks rows in several ways".to_owned())
            };
        };
        // What another transaction has locked is left out, so that no one waits.
        if lock.nonblock == Some(NonBlock::SkipLocked) {
            return Ok(None);
        }
        let fits = |strength: &&Strength| match lock.lock_type {
            LockType::Share => matches!(strength, Strength::Share | Strength::KeyShare),
            LockType::Update => matches!(strength, Strength::Update | Strength::NoKeyUpdate),
        };
        let weakest = self.strengths.iter().filter(fits).min().copied();
        let Some(strength) = weakest else { return Err("its row locks aren't understood".to_owned()) };
        let of = lock.of.as_ref().and_then(|name| name.0.last()).and_then(|part| part.as_ident()).map(ident);
        Ok(Some((of, strength)))
    }

    fn write(&mut self, statement: &Statement) -> Result<(), Unknown> {
        match statement {
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Insert(insert) => self.insert(insert),
            _ => Err("it isn't understood".to_owned()),
        }
    }

    fn update(&mut self, update: &Update) -> Result<(), Unknown> {
        let mut instances = Vec::new();
        self.tables(std::slice::from_ref(&update.table), &mut instances)?;
        if let Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) = &update.from
        {
            self.tables(from, &mut instances)?;
        }
        let conditions: Vec<&Expr> = update.selection.iter().collect();
        self.restrict(&mut instances, &conditions);
        propagate(&mut instances);
        let Ok(mut set) = assigned(&update.assignments) else { return Err("it isn't understood".to_owned()) };
        let Some(access) = instances.first().and_then(|target| self.access(target, Deed::Update)) else {
            return Err("its table isn't known".to_owned());
        };
        let relation = &self.examiner.catalog.relations[access.table];
        let triggers = self.examiner.catalog.triggers(access.table);
        self.require_plain(access.table, triggers.may(|event| event.update))?;
        set.extend(triggers.on_update.iter().cloned());
        set.extend(
            relation.columns.iter().filter(|column| column.generated).map(|column| column.name.clone()),
        );
        let certain = self.is_certain(&instances);
        self.read_before(&instances[0]);
        instances[1..].iter().for_each(|instance| self.find(instance, None, false));
        let mut values = values(self.examiner, access.table, &update.assignments);
        values.retain(|column, _| !triggers.on_update.contains(column));
        self.parents(access.table, &values, Some(&set), false);
        self.children(access.table, &access.equal, Some(&set))?;
        let stays = access.equal.iter().filter(|(column, _)| !set.contains(*column));
        let after: BTreeMap<String, Operand> =
            stays.chain(&values).map(|(column, value)| (column.clone(), value.clone())).collect();
        self.unique(access.table, &after, Some(&set));
        let reads = self.read_by_checks(access.table, &set, read_by_triggers(&triggers, access.reads));
        let mut access = Access { writes: Columns::These(set.clone()), reads, certain, ..access };
        // What is true of the row before isn't afterwards.
        let changes = |column: &&String| set.contains(*column) || is_system_column(column);
        let changed: Vec<String> = access.equal.keys().filter(changes).cloned().collect();
        for column in changed {
            if let Some(value) = access.equal.remove(&column) {
                access.before.insert(column.clone(), value);
            }
            access.tested.insert(column);
        }
        self.found.push(access);
        Ok(())
    }

    fn delete(&mut self, delete: &Delete) -> Result<(), Unknown> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let mut instances = Vec::new();
        self.tables(from, &mut instances)?;
        self.tables(delete.using.as_deref().unwrap_or_default(), &mut instances)?;
        let conditions: Vec<&Expr> = delete.selection.iter().collect();
        self.restrict(&mut instances, &conditions);
        propagate(&mut instances);
        let Some(access) = instances.first().and_then(|target| self.access(target, Deed::Delete)) else {
            return Err("its table isn't known".to_owned());
        };
        let triggers = self.examiner.catalog.triggers(access.table);
        self.require_plain(access.table, triggers.may(|event| event.delete))?;
        let certain = self.is_certain(&instances);
        self.read_before(&instances[0]);
        instances[1..].iter().for_each(|instance| self.find(instance, None, false));
        self.children(access.table, &access.equal, None)?;
        self.found.push(Access { writes: Columns::All, certain, ..access });
        Ok(())
    }

    fn insert(&mut self, insert: &Insert) -> Result<(), Unknown> {
        let TableObject::TableName(name) = &insert.table else {
            return Err("it isn't understood".to_owned());
        };
        let Some(table) = self.examiner.resolved(name).map(|id| self.examiner.catalog.root(id)) else {
            return Err(format!("{name} isn't a table that is known"));
        };
        let relation = &self.examiner.catalog.relations[table];
        let triggers = self.examiner.catalog.triggers(table);
        self.require_plain(table, triggers.may(|event| event.insert))?;
        let named: Vec<String> =
            insert.columns.iter().filter_map(|name| name.0.last()?.as_ident().map(ident)).collect();
        let columns: Vec<String> = if named.is_empty() {
            relation.columns.iter().map(|column| column.name.clone()).collect()
        } else {
            named
        };
        let (deed, changed) = match &insert.on {
            None => (Deed::Insert, None),
            Some(OnInsert::OnConflict(conflict)) => match &conflict.action {
                OnConflictAction::DoNothing => (Deed::InsertOrRead, None),
                OnConflictAction::DoUpdate(update) => (Deed::InsertOrUpdate, Some(&update.assignments)),
            },
            Some(_) => return Err("it isn't understood".to_owned()),
        };
        let writes = match changed {
            None => Columns::All,
            Some(changed) => match assigned(changed) {
                Ok(set) => {
                    self.require_plain(table, triggers.may(|event| event.update))?;
                    Columns::These(set.into_iter().chain(triggers.on_update.iter().cloned()).collect())
                }
                Err(_) => return Err("it isn't understood".to_owned()),
            },
        };
        let alias = insert.table_alias.as_ref().map(|alias| ident(&alias.alias));
        let own = alias.unwrap_or_else(|| relation.name.clone());
        let has = |column: &str| relation.column(column).is_some();
        let reads = match deed {
            // Which rows an index has may depend on any column.
            Deed::InsertOrUpdate if !self.examiner.partial_targets().is_empty() => Columns::All,
            Deed::InsertOrUpdate => {
                let reads = read_by_triggers(&triggers, self.mentions.of(Some(&own), has));
                match &writes {
                    Columns::These(set) => self.read_by_checks(table, set, reads),
                    Columns::All => Columns::All,
                }
            }
            _ => Columns::NONE,
        };
        if let (Deed::InsertOrUpdate, Columns::These(set)) = (deed, &writes) {
            let set = set.clone();
            self.parents(table, &BTreeMap::new(), Some(&set), false);
            self.children(table, &BTreeMap::new(), Some(&set))?;
            self.unique(table, &BTreeMap::new(), Some(&set));
        }
        let rows = insert.source.as_ref().and_then(|query| match &*query.body {
            SetExpr::Values(values) => Some(&values.rows),
            _ => None,
        });
        let row = |values: &[Expr]| -> BTreeMap<String, Operand> {
            let pairs = columns.iter().zip(values);
            pairs
                .filter(|(column, _)| !triggers.on_insert.contains(*column))
                .filter_map(|(column, value)| {
                    Some((column.clone(), operand(self.examiner, table, column, value)?))
                })
                .collect()
        };
        let certain = self.top && deed == Deed::Insert && rows.is_some();
        // Rows of a query: nothing is known of their values.
        let rows: Vec<_> = rows.map_or_else(
            || vec![BTreeMap::new()],
            |rows| rows.iter().map(|values| row(&values.content)).collect(),
        );
        for equal in rows {
            self.parents(table, &equal, None, certain);
            let given: BTreeSet<String> = columns.iter().cloned().collect();
            self.unique_of_new(table, &equal, &given);
            let access = Access { writes: writes.clone(), reads: reads.clone(), equal, ..of(table, deed) };
            self.found.push(Access { certain, ..access });
        }
        Ok(())
    }

    /// The columns that an UPDATE of these depends on, because conditions of the table have both.
    fn read_by_checks(&self, table: RelationId, set: &BTreeSet<String>, reads: Columns) -> Columns {
        let Columns::These(mut names) = reads else { return Columns::All };
        let checks = self.examiner.catalog.members(table).flat_map(|member| &member.checks);
        let again = checks.filter(|check| !check.valid || !check.columns.is_disjoint(set));
        names.extend(again.flat_map(|check| check.columns.iter().cloned()));
        Columns::These(names)
    }

    /// The checks of unique indexes for a row that gets these values by an UPDATE of the columns of `set`,
    /// or by an INSERT.
    fn unique(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
    ) {
        let catalog = self.examiner.catalog;
        for index in catalog.members(table).flat_map(|member| &member.uniqueness) {
            let whole = !index.columns.is_empty() && !index.partial;
            if whole && set.is_some_and(|set| index.columns.is_disjoint(set)) {
                continue;
            }
            let known =
                index.columns.iter().filter_map(|column| Some((column.clone(), values.get(column)?.clone())));
            let reads = if whole { Columns::These(index.columns.clone()) } else { Columns::All };
            let (equal, deferrable) = (known.collect(), index.deferrable);
            let access = Access { equal, reads, deferrable, ..of(table, Deed::Vacant) };
            if !self.found.contains(&access) {
                self.found.push(access);
            }
        }
    }

    /// The same for a new row; `given` are the columns that the INSERT names. Values of their own can't
    /// have been another row's.
    fn unique_of_new(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        given: &BTreeSet<String>,
    ) {
        let before = self.found.len();
        self.unique(table, values, None);
        let relation = &self.examiner.catalog.relations[table];
        let fresh: BTreeSet<String> = relation
            .columns
            .iter()
            .filter(|column| column.fresh && !given.contains(&column.name))
            .map(|column| column.name.clone())
            .collect();
        let fresh_value = |access: &Access| match &access.reads {
            Columns::These(columns) => !columns.is_disjoint(&fresh),
            Columns::All => false,
        };
        let added = self.found.split_off(before);
        self.found.extend(added.into_iter().filter(|access| !fresh_value(access)));
    }

    /// Refuses tables of which writing isn't what the statement says.
    fn require_plain(&self, table: RelationId, fires: bool) -> Result<(), Unknown> {
        let relation = &self.examiner.catalog.relations[table];
        match () {
            () if fires && !self.ignores_triggers => {
                Err(format!("isobench doesn't know what triggers of {} do", relation.name))
            }
            () if relation.rules => Err(format!("{} has rules", relation.name)),
            () if relation.calls_writing => {
                Err(format!("isobench doesn't know what defaults of {} do", relation.name))
            }
            () if !matches!(relation.kind, RelationKind::Table | RelationKind::Partitioned) => {
                Err(format!("{} isn't a table", relation.name))
            }
            () => Ok(()),
        }
    }

    /// The locks by which foreign keys of a row that is written hold on to other rows.
    fn parents(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
        certain: bool,
    ) {
        let catalog = self.examiner.catalog;
        for key in &catalog.foreign_keys {
            let Some((referenced, referencing)) = catalog.ends(key) else { continue };
            let checked = set.is_none_or(|set| key.columns.iter().any(|column| set.contains(column)));
            if referencing != table || !checked {
                continue;
            }
            let pairs = key.referenced_columns.iter().zip(&key.columns);
            let equal: BTreeMap<String, Operand> =
                pairs.filter_map(|(parent, own)| Some((parent.clone(), values.get(own)?.clone()))).collect();
            // NULLs aren't checked.
            let certain = certain && key.valid && equal.len() == key.columns.len();
            let reads = Columns::These(key.referenced_columns.iter().cloned().collect());
            let deferrable = key.deferrable;
            self.found.push(Access { equal, reads, certain, deferrable, ..of(referenced, Deed::Refer) });
        }
    }

    /// What foreign keys check and do when rows of a table with these values are deleted, or the columns of
    /// `set` change.
    fn children(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
    ) -> Result<(), Unknown> {
        let catalog = self.examiner.catalog;
        let changed = catalog.cascades(table, set);
        for key in &catalog.foreign_keys {
            let Some((referenced, referencing)) = catalog.ends(key) else { continue };
            let own = referenced == table
                && set.is_none_or(|set| key.referenced_columns.iter().any(|column| set.contains(column)));
            let pairs = key.columns.iter().zip(&key.referenced_columns);
            let equal = pairs.filter_map(|(child, parent)| {
                Some((child.clone(), values.get(parent).filter(|_| own)?.clone()))
            });
            if own || changed.contains(&referenced) {
                self.found.push(Access {
                    equal: equal.collect(),
                    reads: Columns::These(key.columns.iter().cloned().collect()),
                    deferrable: key.deferrable,
                    ..of(referencing, Deed::Vacant)
                });
            }
            let defaults = [key.on_delete, key.on_update].contains(&OnChange::SetDefault);
            if defaults && changed.contains(&referencing) {
                let reads = Columns::These(key.referenced_columns.iter().cloned().collect());
                self.found.push(Access { reads, ..of(referenced, Deed::Refer) });
            }
        }
        for child in changed {
            let fires = self.examiner.catalog.triggers(child).may(|event| event.update || event.delete);
            self.require_plain(child, fires)?;
            if let Some(member) = catalog.members(child).find(|member| member.calls) {
                return Err(format!("rows of {} that change with it may call functions", member.qualified()));
            }
            self.found.push(anything(child, Deed::Cascade));
        }
        Ok(())
    }

    /// What is done with the rows of an instance; `None` if it isn't a table.
    fn access(&self, instance: &Instance, deed: Deed) -> Option<Access> {
        let relation = &self.examiner.catalog.relations[instance.relation?];
        let reads = self.mentions.of(instance.name.as_deref(), |column| relation.column(column).is_some());
        let table = self.examiner.catalog.root(instance.relation?);
        let (equal, tested) = (instance.equal.clone(), instance.tested.clone());
        Some(Access { equal, tested, reads, ..of(table, deed) })
    }

    /// The tables of a FROM, with the conditions of their joins.
    fn tables(&self, from: &[TableWithJoins], instances: &mut Vec<Instance>) -> Result<(), Unknown> {
        for table in from {
            self.factor(&table.relation, instances)?;
            for join in &table.joins {
                let before = instances.len();
                self.factor(&join.relation, instances)?;
                let (constraint, both) = match &join.join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::CrossJoin(constraint) => (constraint, true),
                    JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                        (constraint, false)
                    }
                    // Either side has rows that the condition doesn't restrict.
                    JoinOperator::Right(constraint)
                    | JoinOperator::RightOuter(constraint)
                    | JoinOperator::FullOuter(constraint) => {
                        self.join(instances, constraint);
                        instances.iter_mut().for_each(Instance::loosen);
                        continue;
                    }
                    _ => return Err("its joins aren't understood".to_owned()),
                };
                self.join(instances, constraint);
                instances[before..].iter_mut().for_each(|instance| instance.nullable |= !both);
                if let JoinConstraint::On(on) = constraint {
                    let first = if both { 0 } else { before };
                    self.restrict_from(instances, first, on);
                }
            }
        }
        Ok(())
    }

    fn factor(&self, factor: &TableFactor, instances: &mut Vec<Instance>) -> Result<(), Unknown> {
        let instance = |name, relation| Instance {
            name,
            relation,
            equal: BTreeMap::new(),
            tested: BTreeSet::new(),
            links: Vec::new(),
            joined: Columns::NONE,
            subquery: false,
            restricted: false,
            nullable: false,
        };
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let last = name.0.last().and_then(|part| part.as_ident()).map(ident);
                let known = alias.as_ref().map(|alias| ident(&alias.name)).or_else(|| last.clone());
                let is_cte = name.0.len() == 1 && last.is_some_and(|last| self.mentions.ctes.contains(&last));
                if args.is_some() || is_cte {
                    instances.push(instance(known, None));
                    return Ok(());
                }
                let Some(relation) = self.examiner.resolved(name) else {
                    return Err(format!("{name} isn't a table that is known"));
                };
                let found = &self.examiner.catalog.relations[relation];
                match found.kind {
                    RelationKind::Table | RelationKind::Partitioned => {
                        instances.push(instance(known, Some(relation)));
                    }
                    RelationKind::System => instances.push(instance(known, None)),
                    _ => return Err(format!("isobench doesn't know what is behind {}", found.name)),
                }
            }
            TableFactor::Derived { alias, .. } => {
                let own = instance(alias.as_ref().map(|alias| ident(&alias.name)), None);
                instances.push(Instance { subquery: true, ..own });
            }
            TableFactor::UNNEST { alias, .. } | TableFactor::Function { alias, .. } => {
                instances.push(instance(alias.as_ref().map(|alias| ident(&alias.name)), None));
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.tables(std::slice::from_ref(&**table_with_joins), instances)?;
            }
            _ => return Err("it isn't understood".to_owned()),
        }
        Ok(())
    }

    fn restrict(&self, instances: &mut [Instance], conditions: &[&Expr]) {
        for condition in conditions {
            self.relate(instances, condition);
            self.restrict_from(instances, 0, condition);
        }
    }

    /// Notes by which columns a join joins.
    fn join(&self, instances: &mut [Instance], constraint: &JoinConstraint) {
        match constraint {
            JoinConstraint::On(on) => self.relate(instances, on),
            JoinConstraint::Using(_) | JoinConstraint::Natural => {
                for instance in instances {
                    instance.joined = Columns::All;
                }
            }
            JoinConstraint::None => {}
        }
    }

    /// Notes the columns that a condition compares with what is of other rows.
    fn relate(&self, instances: &mut [Instance], condition: &Expr) {
        let joined = joining(condition, &|column| self.column(instances, column));
        for (at, column) in joined {
            instances[at].join_by(column);
        }
    }

    /// What who changes or locks rows of an instance reads of them before: by what they are joined.
    fn read_before(&mut self, instance: &Instance) {
        let Some(access) = self.access(instance, Deed::Read) else { return };
        let reads = match &instance.joined {
            Columns::All => access.reads.clone(),
            Columns::These(joined) => Columns::These(
                joined.iter().filter(|name| !access.equal.contains_key(*name)).cloned().collect(),
            ),
        };
        if !reads.is_empty() {
            self.found.push(Access { reads, ..access });
        }
    }

    /// Notes what a condition requires of the rows of instances from `first`.
    fn restrict_from(&self, instances: &mut [Instance], first: usize, condition: &Expr) {
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        for part in parts {
            let pairs = equalities(part);
            let mut left_over = pairs.is_empty();
            for (left, right) in pairs {
                let (one, other) = (self.column(instances, left), self.column(instances, right));
                match (one, other) {
                    (Some((a, own)), Some((b, its))) if a != b => {
                        if a >= first {
                            instances[a].links.push((own.clone(), b, its.clone()));
                        }
                        if b >= first {
                            instances[b].links.push((its, a, own));
                        }
                    }
                    (Some((at, column)), None) | (None, Some((at, column))) => {
                        let value = if self.column(instances, left).is_some() { right } else { left };
                        let table = instances[at].relation;
                        let known = table.and_then(|table| operand(self.examiner, table, &column, value));
                        match known.filter(|_| at >= first) {
                            Some(known) => {
                                let equal = instances[at].equal.entry(column).or_insert(known.clone());
                                left_over |= *equal != known;
                            }
                            None => left_over = true,
                        }
                    }
                    _ => left_over = true,
                }
            }
            if left_over {
                self.test(instances, part);
                for instance in &mut *instances {
                    instance.restricted = true;
                }
            }
        }
    }

    /// Notes that an expression depends on columns, in whatever way.
    fn test(&self, instances: &mut [Instance], expr: &Expr) {
        let mut names = Vec::new();
        let _ = walk(expr, &mut |node| {
            if let Node::Expr(column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) = node {
                names.push(column.clone());
            }
            ControlFlow::Continue(())
        });
        for name in names {
            if let Some((at, column)) = self.column(instances, &name) {
                instances[at].tested.insert(column);
            }
        }
    }

    /// The column of an instance that an expression is.
    fn column(&self, instances: &[Instance], expr: &Expr) -> Option<(usize, String)> {
        match expr {
            Expr::Nested(inner) => self.column(instances, inner),
            Expr::Cast { expr: inner, format: None, .. } => {
                self.column(instances, inner).filter(|(_, column)| is_system_column(column))
            }
            Expr::Identifier(name) => {
                let name = ident(name);
                let has = |instance: &Instance| {
                    let relation = instance.relation.map(|id| &self.examiner.catalog.relations[id]);
                    relation
                        .is_some_and(|relation| relation.column(&name).is_some() || is_system_column(&name))
                };
                Some((instances.iter().position(has)?, name))
            }
            Expr::CompoundIdentifier(parts) => {
                let (last, before) = parts.split_last()?;
                let qualifier = before.last().map(ident)?;
                let at = instances.iter().position(|instance| instance.name.as_ref() == Some(&qualifier))?;
                instances[at].relation?;
                Some((at, ident(last)))
            }
            _ => None,
        }
    }
}

impl Instance {
    /// Notes a column by which its rows are found as the snapshot has them.
    fn join_by(&mut self, column: String) {
        if let Columns::These(joined) = &mut self.joined {
            joined.insert(column);
        }
    }

    /// Forgets what conditions require.
    fn loosen(&mut self) {
        self.tested.extend(std::mem::take(&mut self.equal).into_keys());
        self.tested.extend(self.links.drain(..).map(|(column, ..)| column));
        self.nullable = true;
    }
}

/// Gives columns the values of those that they are equal to; the others are only tested.
fn propagate(instances: &mut [Instance]) {
    loop {
        let mut changed = false;
        for at in 0..instances.len() {
            for (own, other, its) in instances[at].links.clone() {
                let known = instances[other].equal.get(&its).cloned();
                if let (Some(known), false) = (known, instances[at].equal.contains_key(&own)) {
                    instances[at].equal.insert(own, known);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    for instance in instances {
        let unknown =
            instance.links.iter().map(|(own, ..)| own).filter(|own| !instance.equal.contains_key(*own));
        let unknown: Vec<String> = unknown.cloned().collect();
        instance.tested.extend(unknown);
    }
}

/// These columns, and those that triggers read of a row that is updated.
fn read_by_triggers(triggers: &Triggers, reads: Columns) -> Columns {
    match reads {
        Columns::These(mut names) if !triggers.reads_row => {
            names.extend(triggers.reads.iter().cloned());
            Columns::These(names)
        }
        _ => Columns::All,
    }
}

/// Anything that may be done with a table.
pub(crate) fn anything(table: RelationId, deed: Deed) -> Access {
    let writes = if deed == Deed::Read { Columns::NONE } else { Columns::All };
    Access { reads: Columns::All, writes, ..of(table, deed) }
}

/// Something that is done with a table, perhaps, of which nothing else is known.
fn of(table: RelationId, deed: Deed) -> Access {
    Access {
        table,
        deed,
        equal: BTreeMap::new(),
        before: BTreeMap::new(),
        tested: BTreeSet::new(),
        reads: Columns::NONE,
        writes: Columns::NONE,
        certain: false,
        idle: BTreeSet::new(),
        in_result: false,
        deferrable: false,
    }
}

/// The known values that an UPDATE sets columns to.
fn values(
    examiner: &Examiner<'_>,
    table: RelationId,
    assignments: &[Assignment],
) -> BTreeMap<String, Operand> {
    let known = assignments.iter().filter_map(|assignment| {
        let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
        let column = ident(name.0.last()?.as_ident()?);
        let value = operand(examiner, table, &column, &assignment.value)?;
        Some((column, value))
    });
    known.collect()
}

/// A value that a column is compared with or set to, if it follows from variables alone.
fn operand(examiner: &Examiner<'_>, table: RelationId, column: &str, value: &Expr) -> Option<Operand> {
    let relation = &examiner.catalog.relations[table];
    let kind = match relation.column(column) {
        Some(number) => relation.columns[number].kind,
        None if is_system_column(column) => ColumnType::Scalar,
        None => return None,
    };
    match value {
        Expr::Nested(inner) => return operand(examiner, table, column, inner),
        // A cast to a column's own type doesn't change what is equal.
        Expr::Cast { expr: inner, data_type, .. } if is_placeholder(inner) && keeps(kind, data_type) => {
            return operand(examiner, table, column, inner);
        }
        Expr::Value(literal) => match &literal.value {
            Value::Placeholder(name) => return examiner.text.variable(name).map(Operand::Variable),
            other => {
                let span = literal.span.start;
                let varies = examiner.text.is_partly_variable(span);
                return if varies {
                    in_quotes(examiner, literal)
                } else {
                    constant(kind, other).map(Operand::Constant)
                };
            }
        },
        _ => {}
    }
    let (text, slots) = computed(examiner, value, &[])?;
    Some(Operand::Computed(text, slots))
}

/// The value of a literal in which variables are substituted: the only one as it is, or what follows from
/// them.
fn in_quotes(examiner: &Examiner<'_>, literal: &ValueWithSpan) -> Option<Operand> {
    if let Some(slot) = examiner.text.variable_in_quotes(literal) {
        return Some(Operand::Variable(slot));
    }
    let Value::SingleQuotedString(_) = literal.value else { return None };
    let (mut text, mut slots) = (String::new(), Vec::new());
    for part in examiner.text.parts_of_literal(literal.span.start)? {
        match part {
            TextPart::Text(plain) => text.push_str(&plain),
            TextPart::Variable(slot) => {
                slots.push(slot);
                let _ = write!(text, "${}", slots.len());
            }
            TextPart::Parameter(_) => return None,
        }
    }
    Some(Operand::Computed(format!("'{text}'"), slots))
}

/// An expression of nothing but operators, casts and calls of these functions, of literals and variables,
/// so that the same values give the same one: its text with `$1`, `$2`, … in place of the variables, and
/// these.
pub(super) fn computed(
    examiner: &Examiner<'_>,
    value: &Expr,
    functions: &[&str],
) -> Option<(String, Vec<Slot>)> {
    let (mut slots, mut plain) = (Vec::new(), true);
    let _ = walk(value, &mut |node| {
        match node {
            Node::Expr(Expr::Value(literal)) => match &literal.value {
                Value::Placeholder(name) => match examiner.text.variable(name) {
                    Some(slot) => slots.push(slot),
                    None => plain = false,
                },
                _ => plain &= !examiner.text.is_partly_variable(literal.span.start),
            },
            Node::Expr(
                Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Cast { .. } | Expr::Nested(_),
            ) => {}
            Node::Expr(Expr::Function(function)) => {
                let name = function.name.0.last().and_then(|part| part.as_ident()).map(ident);
                plain &= name.is_some_and(|name| functions.contains(&name.as_str()));
            }
            _ => plain = false,
        }
        ControlFlow::Continue(())
    });
    let text = || {
        let mut text = value.to_string();
        // As `$1`, `$2`, … of the variables in order of the text.
        let mut number = 0;
        let mut at = 0;
        while let Some(found) = text[at..].find('$') {
            let start = at + found + 1;
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                number += 1;
                text.replace_range(start..start + digits, &number.to_string());
            }
            at = start;
        }
        text
    };
    plain.then(|| (text(), slots))
}

/// True if a cast to a type leaves the values of columns of this type as they are.
fn keeps(kind: ColumnType, to: &DataType) -> bool {
    match kind {
        ColumnType::Integer => matches!(
            to,
            DataType::SmallInt(None)
                | DataType::Int2(None)
                | DataType::Int(None)
                | DataType::Integer(None)
                | DataType::Int4(None)
                | DataType::BigInt(None)
                | DataType::Int8(None)
        ),
        ColumnType::Text => matches!(to, DataType::Text | DataType::Varchar(None)),
        ColumnType::Uuid => matches!(to, DataType::Uuid),
        _ => false,
    }
}

fn is_placeholder(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)))
}

/// A constant in a form in which equal values of the column's type are the same text, if it has one.
pub(crate) fn constant(kind: ColumnType, value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(text, _) | Value::SingleQuotedString(text) => text.clone(),
        _ => return None,
    };
    match kind {
        ColumnType::Integer => text.trim().parse::<i64>().ok().map(|number| number.to_string()),
        ColumnType::Text | ColumnType::Enum => Some(text),
        _ => None,
    }
}
