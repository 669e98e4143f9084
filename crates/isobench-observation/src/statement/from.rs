//! The tables and subqueries in FROM.

use std::collections::BTreeSet;

use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::{Examiner, Level, NotUnderstood, Packing, Role, Scope, Shown, Understood, ident};
use crate::dark::{Clause, Dark};
use isobench_sql::{Inheritance, RelationId};

/// A table or subquery in FROM.
pub(super) struct Item {
    /// The name by which columns refer to it, as SQL compares it.
    pub name: String,
    /// That name as written, with its schema if columns need it.
    pub qualifier: String,
    pub source: Source,
    pub nullable: bool,
}

pub(super) enum Source {
    /// A table; `part` if the item may not be all of it: a partition, child or sample.
    Table { relation: RelationId, part: bool },
    /// A subquery or CTE, with the rows that it can pass on.
    Passed { shown: Vec<Shown>, writes: bool },
    /// A function, or a table whose rows aren't observed.
    Nothing,
}

/// How a statement names a table.
pub(super) struct Named {
    /// The first token of the name.
    pub start: usize,
    /// The name, as SQL compares it, if no schema is written.
    pub bare: Option<String>,
    /// The name by which columns refer to it, as SQL compares it.
    pub known: String,
    /// That name as written, with its schema if columns need it.
    pub qualifier: String,
}

/// The items of a FROM clause.
#[derive(Default)]
pub(super) struct Items {
    pub list: Vec<Item>,
    pub natural: bool,
}

impl Items {
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.list.iter().map(|item| item.name.clone()).collect()
    }

    /// These items, if no two have the same name.
    fn distinct(self) -> Understood<Self> {
        let names: Vec<&String> =
            self.list.iter().map(|item| &item.name).filter(|name| !name.is_empty()).collect();
        let distinct: BTreeSet<&String> = names.iter().copied().collect();
        // Two tables with one name (of two schemas): what a name denotes isn't plain.
        if distinct.len() == names.len() { Ok(self) } else { Err(NotUnderstood) }
    }
}

impl Examiner<'_> {
    /// The items of FROM.
    pub(super) fn items(&mut self, from: &[TableWithJoins], scope: &Scope) -> Understood<Items> {
        let mut items = Items::default();
        for table in from {
            self.joined(table, scope, &mut items)?;
        }
        items.distinct()
    }

    /// The items of the source of a MERGE.
    pub(super) fn items_of(&mut self, source: &TableFactor, scope: &Scope) -> Understood<Items> {
        let mut items = Items::default();
        self.factor(source, scope, &mut items)?;
        items.distinct()
    }

    fn joined(&mut self, table: &TableWithJoins, scope: &Scope, items: &mut Items) -> Understood<()> {
        let first = items.list.len();
        self.factor(&table.relation, scope, items)?;
        for join in &table.joins {
            let right = items.list.len();
            let (left_null, right_null) = nullable(join)?;
            self.factor(&join.relation, scope, items)?;
            if left_null {
                items.list[first..right].iter_mut().for_each(|item| item.nullable = true);
            }
            if right_null {
                items.list[right..].iter_mut().for_each(|item| item.nullable = true);
            }
            items.natural |= is_natural(join);
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor, scope: &Scope, items: &mut Items) -> Understood<()> {
        match factor {
            TableFactor::Table { args: Some(_), alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => {
                let name = alias.as_ref().map(|alias| ident(&alias.name)).unwrap_or_default();
                items.list.push(Item {
                    qualifier: name.clone(),
                    name,
                    source: Source::Nothing,
                    nullable: false,
                });
                Ok(())
            }
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                let item = self.table(name, alias.as_ref(), sample.is_some(), scope)?;
                items.list.push(item);
                Ok(())
            }
            TableFactor::Derived { subquery, alias, sample: None, .. } => {
                let passed = self.query(subquery, scope, false)?;
                let (name, qualifier) = match alias {
                    Some(alias) => {
                        let place = self.token(alias.name.span)?;
                        self.known_names.insert(place);
                        (ident(&alias.name), self.written(&alias.name)?)
                    }
                    None => (String::new(), String::new()),
                };
                let source = Source::Passed { shown: passed, writes: false };
                items.list.push(Item { name, qualifier, source, nullable: false });
                Ok(())
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.joined(table_with_joins, scope, items)
            }
            _ => Err(NotUnderstood),
        }
    }

    /// The text of a name as written.
    pub(super) fn written(&self, name: &Ident) -> Understood<String> {
        let place = self.token(name.span)?;
        Ok(self.text.source[self.text.tokens[place].range.clone()].to_owned())
    }

    fn table(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        sample: bool,
        scope: &Scope,
    ) -> Understood<Item> {
        let Named { start, bare, known, qualifier } = self.named(name, alias.map(|alias| &alias.name))?;
        let item =
            |source| Item { name: known.clone(), qualifier: qualifier.clone(), source, nullable: false };
        if let Some(cte) = bare.and_then(|name| scope.ctes.get(&name)) {
            self.known_names.insert(start);
            if let Some(alias) = alias {
                let place = self.token(alias.name.span)?;
                self.known_names.insert(place);
            }
            let shown = cte.passes.clone();
            return Ok(item(Source::Passed { shown, writes: cte.writes }));
        }
        self.handled.insert(start);
        let Some(relation) = self.relation(name, true) else { return Ok(item(Source::Nothing)) };
        let table = self.catalog.relations[self.catalog.root(relation)].qualified();
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            self.note(Dark::Hidden { table, clause: Clause::Renamed });
            return Ok(item(Source::Nothing));
        }
        let part = sample || self.is_part(relation, start);
        Ok(item(Source::Table { relation, part }))
    }

    /// Reads how a statement names a table.
    pub(super) fn named(&self, name: &ObjectName, alias: Option<&Ident>) -> Understood<Named> {
        let parts = self.parts(name)?;
        let (Some((first, start)), Some((last, end))) = (parts.first().copied(), parts.last().copied())
        else {
            return Err(NotUnderstood);
        };
        let bare = parts.len() == 1;
        // `FROM ONLY t` isn't a table "only" with an alias t.
        if bare && first.quote_style.is_none() && first.value.eq_ignore_ascii_case("only") {
            return Err(NotUnderstood);
        }
        let (known, qualifier) = match alias {
            Some(alias) => (ident(alias), self.written(alias)?),
            None => (ident(last), self.text.written(&(start..end + 1)).to_owned()),
        };
        Ok(Named { start, bare: bare.then(|| ident(first)), known, qualifier })
    }

    /// True if a table whose name starts at a token may not be all of its rows: after ONLY, or a
    /// partition or child.
    pub(super) fn is_part(&self, relation: RelationId, start: usize) -> bool {
        let only = start.checked_sub(1).is_some_and(|before| self.is_only(before));
        let inheritance = &self.catalog.relations[relation].inheritance;
        only || matches!(inheritance, Inheritance::Partition { .. } | Inheritance::Child { .. })
    }

    /// The rows that a list of output columns over these items can show.
    pub(super) fn readable(&mut self, items: &Items, at: usize, before: &'static str) -> Vec<Shown> {
        let mut found = Vec::new();
        for item in &items.list {
            match &item.source {
                Source::Table { relation, .. } => {
                    let level = Level { at, before, qualifier: item.qualifier.clone() };
                    let rows = Shown {
                        table: self.catalog.root(*relation),
                        role: Role::Read,
                        levels: vec![level],
                        packed: Packing::Plain,
                        nullable: item.nullable,
                        old: None,
                        transaction: false,
                        searches: Vec::new(),
                        page: None,
                        alongside: None,
                    };
                    self.offered.push(rows.clone());
                    found.push(rows);
                }
                Source::Passed { shown, .. } => {
                    for rows in shown {
                        let mut rows = rows.clone();
                        rows.levels.push(Level { at, before, qualifier: item.qualifier.clone() });
                        rows.nullable |= item.nullable;
                        // Whether this query passes on all rows is for it to say.
                        rows.searches.clear();
                        found.push(rows);
                    }
                }
                Source::Nothing => {}
            }
        }
        found
    }

    /// Notes the rows of items as hidden by a clause.
    pub(super) fn hide(&mut self, items: &Items, clause: Clause) {
        for table in self.read_by(items) {
            self.note(Dark::Hidden { table: self.catalog.relations[table].qualified(), clause });
        }
    }

    /// Notes that rows which items didn't find aren't known.
    pub(super) fn unsearched(&mut self, items: &Items, clause: Clause) {
        for table in self.read_by(items) {
            self.note(Dark::SearchBy { table: self.catalog.relations[table].qualified(), clause });
        }
    }

    /// The tables that items read rows of, in their order, repeated as often as they are read.
    fn read_by(&self, items: &Items) -> Vec<RelationId> {
        let mut found = Vec::new();
        for item in &items.list {
            match &item.source {
                Source::Table { relation, .. } => found.push(self.catalog.root(*relation)),
                Source::Passed { shown, .. } => {
                    let read = shown.iter().filter(|rows| rows.role == Role::Read);
                    found.extend(read.map(|rows| rows.table));
                }
                Source::Nothing => {}
            }
        }
        found
    }
}

/// Whether a join may lack rows on its left side and on its right side.
fn nullable(join: &Join) -> Understood<(bool, bool)> {
    if join.global {
        return Err(NotUnderstood);
    }
    match join.join_operator {
        JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => Ok((false, false)),
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => Ok((false, true)),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Ok((true, false)),
        JoinOperator::FullOuter(_) => Ok((true, true)),
        _ => Err(NotUnderstood),
    }
}

fn is_natural(join: &Join) -> bool {
    matches!(
        join.join_operator,
        JoinOperator::Join(JoinConstraint::Natural)
            | JoinOperator::Inner(JoinConstraint::Natural)
            | JoinOperator::Left(JoinConstraint::Natural)
            | JoinOperator::LeftOuter(JoinConstraint::Natural)
            | JoinOperator::Right(JoinConstraint::Natural)
            | JoinOperator::RightOuter(JoinConstraint::Natural)
            | JoinOperator::FullOuter(JoinConstraint::Natural)
    )
}
