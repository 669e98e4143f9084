//! INSERT, UPDATE, DELETE and MERGE: the rows that RETURNING can show.

use std::collections::BTreeSet;

use isobench_isolation::observed::Comparison;
use isobench_script::{SearchValue, SearchWhen};
use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, Ident, Insert, Merge, MergeAction,
    MergeInsertKind, MergeUpdateKind, ObjectName, OnConflictAction, OnInsert, OutputClause, Query, SetExpr,
    Statement, TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind,
};

use super::clauses::{is_plain_delete, is_plain_insert, is_plain_update};
use super::condition::{Table, take_key};
use super::from::{Item, Items, Named, Source};
use super::walk::conjuncts;
use super::{
    Condition, Examiner, Level, NotUnderstood, Packing, Role, Scope, Search, Shown, Understood, ident,
};
use crate::dark::{Clause, Dark, Unshown};
use isobench_sql::{Events, Inheritance, RelationId, RelationKind};

/// The table that a statement writes.
struct Target {
    item: Item,
    /// `None` if its rows can't be observed.
    relation: Option<RelationId>,
}

/// The place where RETURNING goes, or goes on.
struct Returning {
    at: usize,
    before: &'static str,
    /// The name of the replaced row, where the server shows it.
    old: Option<&'static str>,
}

impl Examiner<'_> {
    /// The rows that a data-modifying statement can show; `end` is the token after it. `alone` if it
    /// is the whole statement, without WITH.
    pub(super) fn write(
        &mut self,
        statement: &Statement,
        end: usize,
        scope: &Scope,
        alone: bool,
    ) -> Understood<Vec<Shown>> {
        match statement {
            Statement::Insert(insert) => self.insert(insert, end, scope),
            Statement::Update(update) => self.update(update, end, scope, alone),
            Statement::Delete(delete) => self.delete(delete, end, scope, alone),
            Statement::Merge(merge) => self.merge(merge, end, scope),
            _ => Err(NotUnderstood),
        }
    }

    fn update(&mut self, update: &Update, end: usize, scope: &Scope, alone: bool) -> Understood<Vec<Shown>> {
        if !is_plain_update(update) {
            return Err(NotUnderstood);
        }
        let target = self.target_of_factor(&update.table.relation)?;
        let from = match &update.from {
            None => &[][..],
            Some(UpdateTableFromKind::AfterSet(from)) => from,
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(NotUnderstood),
        };
        let items = self.items(from, scope)?;
        let set = self.set_in(&target, assigned(&update.assignments)?);
        self.effects(&target, Events { update: true, ..Events::default() }, &set);
        let returning = self.returning(end, update.returning.is_some(), &[&target], &items)?;
        let mut shown = self.target_rows(&target, Role::Updated, &set, &returning);
        let searched = alone && from.is_empty();
        self.search_of_write(&target, &items, searched, update.selection.as_ref(), shown.as_mut());
        Ok(self.with_reads(shown, items, &returning))
    }

    fn delete(&mut self, delete: &Delete, end: usize, scope: &Scope, alone: bool) -> Understood<Vec<Shown>> {
        let FromTable::WithFromKeyword(from) = &delete.from else { return Err(NotUnderstood) };
        let [TableWithJoins { relation, joins }] = from.as_slice() else { return Err(NotUnderstood) };
        if !is_plain_delete(delete) || !joins.is_empty() {
            return Err(NotUnderstood);
        }
        let target = self.target_of_factor(relation)?;
        let using = delete.using.as_deref().unwrap_or_default();
        let items = self.items(using, scope)?;
        self.effects(&target, Events { delete: true, ..Events::default() }, &BTreeSet::new());
        let returning = self.returning(end, delete.returning.is_some(), &[&target], &items)?;
        let mut shown = self.target_rows(&target, Role::Deleted, &BTreeSet::new(), &returning);
        let searched = alone && using.is_empty();
        self.search_of_write(&target, &items, searched, delete.selection.as_ref(), shown.as_mut());
        Ok(self.with_reads(shown, items, &returning))
    }

    fn insert(&mut self, insert: &Insert, end: usize, scope: &Scope) -> Understood<Vec<Shown>> {
        let TableObject::TableName(name) = &insert.table else { return Err(NotUnderstood) };
        if !insert.into || !is_plain_insert(insert) {
            return Err(NotUnderstood);
        }
        let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
        let target = self.target(name, alias)?;
        self.source(insert.source.as_deref(), scope)?;
        // A row that is neither inserted nor updated isn't shown.
        let (role, set, skips) = match &insert.on {
            None => (Role::Inserted, BTreeSet::new(), false),
            Some(OnInsert::OnConflict(conflict)) => match &conflict.action {
                OnConflictAction::DoNothing => (Role::Inserted, BTreeSet::new(), true),
                OnConflictAction::DoUpdate(update) => {
                    let skips = update
                        .selection
                        .as_ref()
                        .is_some_and(|condition| !self.follows(insert, &target, condition));
                    (Role::Upserted, self.set_in(&target, assigned(&update.assignments)?), skips)
                }
            },
            Some(_) => return Err(NotUnderstood),
        };
        let events = Events { insert: true, update: role == Role::Upserted, delete: false };
        self.effects(&target, events, &set);
        if let (true, Some(relation)) = (skips, target.relation) {
            let root = self.catalog.root(relation);
            match self.prevented(insert, &target, relation).filter(|_| scope.ctes.is_empty()) {
                Some(search) => self.found.denials.push((root, search)),
                None => self.note(Dark::Conflict { table: self.catalog.relations[root].qualified() }),
            }
        }
        let returning = self.returning(end, insert.returning.is_some(), &[&target], &Items::default())?;
        let shown = self.target_rows(&target, role, &set, &returning);
        if let (Some(source), Some(_), true) = (insert.source.as_deref(), &shown, scope.ctes.is_empty()) {
            // It is the statement's first entry.
            self.inserted_if_none(source, scope, 0);
        }
        Ok(shown.into_iter().collect())
    }

    /// True if the condition of DO UPDATE is true of every row that prevents the insertion of one row: it
    /// requires no more than the values by which the rows collide.
    fn follows(&self, insert: &Insert, target: &Target, condition: &Expr) -> bool {
        let (Some(OnInsert::OnConflict(conflict)), Some(relation)) = (&insert.on, target.relation) else {
            return false;
        };
        let table = &self.catalog.relations[relation];
        let Some(ConflictTarget::Columns(colliding)) = &conflict.conflict_target else { return false };
        let plain = table.kind == RelationKind::Table
            && table.inheritance == Inheritance::None
            && table.triggers.inserts_as_given();
        let row = insert.source.as_deref().and_then(|source| match &*source.body {
            SetExpr::Values(values) => <&[_; 1]>::try_from(values.rows.as_slice()).ok(),
            _ => None,
        });
        let (Some([row]), true) = (row, plain && !insert.columns.is_empty()) else { return false };
        let own = Table { examiner: self, relation: table, item: &target.item };
        let inserted = |name: &str| {
            let named = |column: &ObjectName| {
                column.0.len() == 1 && column.0[0].as_ident().is_some_and(|column| ident(column) == name)
            };
            let place = insert.columns.iter().position(named)?;
            let kind = table.columns[table.column(name)?].kind;
            own.value(row.get(place)?, kind).filter(|value| *value != SearchValue::Null)
        };
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        parts.into_iter().all(|part| match own.condition(part) {
            Some(Condition::True) => true,
            Some(Condition::Compare(name, Comparison::Equal, value)) => {
                colliding.iter().any(|column| ident(column) == name) && inserted(&name) == Some(value)
            }
            _ => false,
        })
    }

    /// What `INSERT … VALUES (…) ON CONFLICT DO NOTHING` of one row tells if it inserts nothing: that
    /// there is a row with its key.
    fn prevented(&self, insert: &Insert, target: &Target, relation: RelationId) -> Option<Search> {
        let Some(OnInsert::OnConflict(conflict)) = &insert.on else { return None };
        let table = &self.catalog.relations[relation];
        let plain = table.kind == RelationKind::Table
            && table.inheritance == Inheritance::None
            && table.triggers.inserts_as_given()
            && matches!(conflict.action, OnConflictAction::DoNothing);
        let by_key = match &conflict.conflict_target {
            Some(ConflictTarget::Columns(names)) => {
                let names: BTreeSet<String> = names.iter().map(ident).collect();
                names.iter().map(String::as_str).eq(table.key_names().into_iter().collect::<BTreeSet<_>>())
            }
            None | Some(ConflictTarget::OnConstraint(_)) => table.only_key,
        };
        let SetExpr::Values(values) = &*insert.source.as_deref()?.body else { return None };
        let [row] = values.rows.as_slice() else { return None };
        // Without a list of columns the values are those of the first ones.
        let listed = !insert.columns.is_empty();
        if !plain || !by_key || listed && row.len() != insert.columns.len() {
            return None;
        }
        let own = Table { examiner: self, relation: table, item: &target.item };
        let mut conditions = Vec::with_capacity(table.key.len());
        for place in &table.key {
            let column = &table.columns[*place];
            let named = |name: &ObjectName| {
                name.0.len() == 1 && name.0[0].as_ident().is_some_and(|name| ident(name) == column.name)
            };
            let place = if listed { insert.columns.iter().position(named)? } else { *place };
            let value = own.value(row.get(place)?, column.kind)?;
            conditions.push(Condition::Compare(column.name.clone(), Comparison::Equal, value));
        }
        let key = Some(take_key(table, &mut conditions)?);
        Some(Search { key, condition: Condition::Absent, referred: None, when: SearchWhen::Empty })
    }

    /// Notes the tables that the query of an INSERT reads.
    fn source(&mut self, source: Option<&Query>, scope: &Scope) -> Understood<()> {
        let Some(query) = source else { return Ok(()) };
        let inner = self.with(query, scope)?;
        if let SetExpr::Select(select) = &*query.body {
            let items = self.items(&select.from, &inner)?;
            self.hide(&items, Clause::InsertQuery);
        }
        Ok(())
    }

    fn merge(&mut self, merge: &Merge, end: usize, scope: &Scope) -> Understood<Vec<Shown>> {
        if !merge.into || !merge.optimizer_hints.is_empty() {
            return Err(NotUnderstood);
        }
        let target = self.target_of_factor(&merge.table)?;
        let items = self.items_of(&merge.source, scope)?;
        let mut events = Events::default();
        let mut set = BTreeSet::new();
        for clause in &merge.clauses {
            match &clause.action {
                MergeAction::Insert(insert) if matches!(insert.kind, MergeInsertKind::Values(_)) => {
                    events.insert = true;
                }
                MergeAction::Update(update) => {
                    let MergeUpdateKind::Set(assignments) = &update.kind else { return Err(NotUnderstood) };
                    events.update = true;
                    set.extend(self.set_in(&target, assigned(assignments)?));
                }
                MergeAction::Delete { .. } => events.delete = true,
                MergeAction::DoNothing { .. } => {}
                MergeAction::Insert(_) => return Err(NotUnderstood),
            }
        }
        self.effects(&target, events, &set);
        if !self.catalog.merge_returns() {
            self.unshown(&target, Unshown::Merge);
            self.hide(&items, Clause::Derived);
            return Ok(Vec::new());
        }
        let present = match &merge.output {
            None => false,
            Some(OutputClause::Returning { .. }) => true,
            Some(_) => return Err(NotUnderstood),
        };
        let returning = self.returning(end, present, &[&target], &items)?;
        let partitioned = target.relation.is_some_and(|relation| self.is_partitioned(relation));
        let shown = if partitioned && events.insert {
            self.unshown(&target, Unshown::Partitioned);
            None
        } else {
            self.target_rows(&target, Role::Merged, &set, &returning)
        };
        self.unsearched(&items, Clause::Join);
        Ok(self.with_reads(shown, items, &returning))
    }

    fn target_of_factor(&mut self, factor: &TableFactor) -> Understood<Target> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                    return Err(NotUnderstood);
                }
                self.target(name, alias.as_ref().map(|alias| &alias.name))
            }
            _ => Err(NotUnderstood),
        }
    }

    fn target(&mut self, name: &ObjectName, alias: Option<&Ident>) -> Understood<Target> {
        let Named { start, known, qualifier, .. } = self.named(name, alias)?;
        self.handled.insert(start);
        let relation = self.relation(name, false);
        let source = if let Some(relation) = relation {
            Source::Table { relation, part: self.is_part(relation, start) }
        } else {
            self.unknown_effects(name);
            Source::Nothing
        };
        Ok(Target { item: Item { name: known, qualifier, source, nullable: false }, relation })
    }

    fn is_partitioned(&self, relation: RelationId) -> bool {
        self.catalog.relations[relation].kind == RelationKind::Partitioned
    }

    /// What else changes when a table changes whose own rows aren't observed.
    fn unknown_effects(&mut self, name: &ObjectName) {
        if let Some(relation) = self.resolved(name) {
            let any = Events { insert: true, update: true, delete: true };
            self.indirect(relation, any, None);
        }
    }

    /// These columns, and those that triggers set when rows of a table are updated.
    fn set_in(&self, target: &Target, mut set: BTreeSet<String>) -> BTreeSet<String> {
        if let Some(table) = target.relation {
            set.extend(self.catalog.triggers(table).on_update);
        }
        set
    }

    /// What triggers, defaults and foreign keys do when a table is written.
    fn effects(&mut self, target: &Target, events: Events, set: &BTreeSet<String>) {
        if let Some(relation) = target.relation {
            self.indirect(relation, events, Some(set));
        }
    }

    fn indirect(&mut self, relation: RelationId, events: Events, set: Option<&BTreeSet<String>>) {
        let root = self.catalog.root(relation);
        let family = (0..self.catalog.relations.len()).filter(|id| self.catalog.root(*id) == root);
        let family: Vec<RelationId> = family.collect();
        let fires = |own: Events| {
            own.insert && events.insert || own.update && events.update || own.delete && events.delete
        };
        let table = self.catalog.relations[relation].qualified();
        if fires(self.catalog.triggers(relation).unknown) {
            self.found.writes_anything = true;
            self.note(Dark::Triggers { table: table.clone() });
        }
        if (events.insert || events.update)
            && family.iter().any(|id| self.catalog.relations[*id].calls_writing)
        {
            self.found.writes_anything = true;
            self.note(Dark::Calls { table: table.clone() });
        }
        let mut changed = BTreeSet::new();
        if events.delete {
            changed.extend(self.catalog.cascades(root, None));
        }
        if events.update {
            let all =
                || self.catalog.relations[root].columns.iter().map(|column| column.name.clone()).collect();
            changed.extend(self.catalog.cascades(root, Some(&set.cloned().unwrap_or_else(all))));
        }
        for other in changed {
            self.found.unseen.insert(other);
            let to = self.catalog.relations[other].qualified();
            self.note(Dark::Cascade { table: table.clone(), to });
        }
    }

    /// The place for RETURNING at the end of a statement.
    fn returning(
        &mut self,
        end: usize,
        present: bool,
        targets: &[&Target],
        items: &Items,
    ) -> Understood<Returning> {
        let last = end.checked_sub(1).filter(|last| self.range.contains(last)).ok_or(NotUnderstood)?;
        let at = self.text.tokens[last].range.end;
        let names = items.names();
        let taken = names.contains("old") || targets.iter().any(|target| target.item.name == "old");
        let old = self.catalog.shows_old().then_some(if taken { "isobench_old" } else { "old" });
        let renames = taken && old.is_some();
        let before = match (present, renames) {
            (true, _) => ", ",
            (false, false) => " RETURNING ",
            (false, true) => " RETURNING WITH (OLD AS isobench_old) ",
        };
        if present && renames {
            let place = self.returning_token(end)?;
            let at = self.text.tokens[place].range.end;
            self.found.additions.push((at, " WITH (OLD AS isobench_old)".to_owned()));
        }
        Ok(Returning { at, before, old })
    }

    /// The last word RETURNING before a place, at the same depth of parentheses.
    fn returning_token(&self, end: usize) -> Understood<usize> {
        use sqlparser::tokenizer::Token;
        let mut depth = 0_usize;
        for place in (self.range.start..end).rev() {
            let token = &self.text.tokens[place];
            match token.token.token {
                Token::RParen => depth += 1,
                Token::LParen => depth = depth.checked_sub(1).ok_or(NotUnderstood)?,
                _ if depth == 0 && token.is("returning") => {
                    let before = place.checked_sub(1).map(|before| &self.text.tokens[before]);
                    let name =
                        before.is_some_and(|token| token.is("as") || token.token.token == Token::Period);
                    if !name {
                        return Ok(place);
                    }
                }
                _ => {}
            }
        }
        Err(NotUnderstood)
    }

    fn target_rows(
        &mut self,
        target: &Target,
        role: Role,
        set: &BTreeSet<String>,
        returning: &Returning,
    ) -> Option<Shown> {
        let relation = target.relation?;
        let root = self.catalog.root(relation);
        if self.catalog.relations[root].key_names().iter().any(|name| set.contains(*name)) {
            self.unshown(target, Unshown::Key);
            return None;
        }
        // A row that is routed to a partition has no system columns in RETURNING.
        let routed = self.is_partitioned(relation) && matches!(role, Role::Inserted | Role::Upserted);
        if routed && role == Role::Upserted {
            self.unshown(target, Unshown::Partitioned);
            return None;
        }
        if routed && self.surroundings.savepoints {
            self.unshown(target, Unshown::PartitionedInSavepoint);
            return None;
        }
        let level =
            Level { at: returning.at, before: returning.before, qualifier: target.item.qualifier.clone() };
        let replaces = matches!(role, Role::Updated | Role::Upserted | Role::Merged);
        let rows = Shown {
            table: root,
            role,
            levels: vec![level],
            packed: Packing::Plain,
            nullable: false,
            old: returning.old.filter(|_| replaces),
            transaction: routed,
            searches: Vec::new(),
            page: None,
            alongside: None,
        };
        self.offered.push(rows.clone());
        Some(rows)
    }

    fn unshown(&mut self, target: &Target, reason: Unshown) {
        if let Some(relation) = target.relation {
            let root = self.catalog.root(relation);
            self.found.unseen.insert(root);
            let table = self.catalog.relations[root].qualified();
            self.note(Dark::Unshown { table, reason });
        }
    }

    /// The written rows, and those of the tables in FROM or USING.
    fn with_reads(&mut self, shown: Option<Shown>, items: Items, returning: &Returning) -> Vec<Shown> {
        let items = self.without_subqueries(items);
        let mut found: Vec<Shown> = shown.into_iter().collect();
        found.extend(self.readable(&items, returning.at, returning.before));
        found
    }

    /// Subqueries in FROM of a data-modifying statement stay as they are.
    fn without_subqueries(&mut self, items: Items) -> Items {
        let Items { list, natural } = items;
        let (passed, list): (Vec<Item>, Vec<Item>) =
            list.into_iter().partition(|item| matches!(item.source, Source::Passed { .. }));
        let passed = Items { list: passed, natural };
        self.hide(&passed, Clause::Derived);
        Items { list, natural }
    }

    fn search_of_write(
        &mut self,
        target: &Target,
        items: &Items,
        searched: bool,
        condition: Option<&Expr>,
        shown: Option<&mut Shown>,
    ) {
        let Some(relation) = target.relation else { return };
        let root = self.catalog.root(relation);
        let table = self.catalog.relations[root].qualified();
        let before = self.catalog.relations[relation].triggers.before_row;
        let clause = if !items.list.is_empty() {
            Some(Clause::Join)
        } else if !searched {
            Some(Clause::With)
        } else if matches!(target.item.source, Source::Table { part: true, .. }) {
            Some(Clause::Part)
        } else if before.update || before.delete {
            Some(Clause::Trigger)
        } else {
            None
        };
        match clause {
            Some(clause) => {
                self.note(Dark::SearchBy { table, clause });
                self.unsearched(items, clause);
            }
            None => {
                if let Some(shown) = shown {
                    shown.searches.extend(self.search(relation, &target.item, condition));
                }
            }
        }
    }
}

/// The columns that a statement sets.
pub(super) fn assigned(assignments: &[Assignment]) -> Understood<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for assignment in assignments {
        let names = match &assignment.target {
            AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
            AssignmentTarget::Tuple(names) => names.as_slice(),
        };
        for name in names {
            // The first part: `SET point.x = 1` sets a field of a column.
            let first = name.0.first().and_then(|part| part.as_ident()).ok_or(NotUnderstood)?;
            found.insert(ident(first));
        }
    }
    Ok(found)
}
