//! What a join missed, where each of its tables is searched by constants alone.
//!
//! If every condition that joins two tables requires columns to be equal that must both equal one
//! constant, the join is the product of what is found in each table. An inner join that has a row has
//! found all rows of each; a left join finds the rows of its first table whatever it finds in the
//! others, and theirs if it has found one there.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use isobench_isolation::observed::Comparison;
use isobench_script::{SearchValue, SearchWhen};
use sqlparser::ast::{BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, TableWithJoins};

use super::condition::{Table, conjuncts, take_key};
use super::from::{Item, Items, Source};
use super::walk::{Node, walk};
use super::{Condition, Examiner, Search, ident};
use crate::catalog::{ColumnType, Relation, RelationId};

/// A column: the table's place in FROM, and its name.
type Column = (usize, String);

/// Where a part of a condition belongs.
#[derive(Debug, Clone, Copy)]
enum Belongs {
    /// To the table at this place in FROM.
    Table(usize),
    /// To two tables, of which it requires columns to be equal.
    Join,
}

/// The conditions of a join, by where they belong.
#[derive(Default)]
struct Conditions {
    /// For each table, those on its own columns.
    own: Vec<Vec<Condition>>,
    /// Pairs of columns that must be equal.
    equal: Vec<(Column, Column)>,
}

impl Examiner<'_> {
    /// The searches of a join, one for each item. `None` if what it missed doesn't follow.
    pub(super) fn join_searches(
        &self,
        from: &[TableWithJoins],
        condition: Option<&Expr>,
        items: &Items,
    ) -> Option<Vec<Search>> {
        let [table] = from else { return None };
        if items.natural || table.joins.len() + 1 != items.list.len() {
            return None;
        }
        let mut conditions = Conditions { own: vec![Vec::new(); items.list.len()], ..Conditions::default() };
        let mut inner = vec![true];
        let mut using = BTreeSet::new();
        for (place, join) in (1..).zip(&table.joins) {
            let (constraint, is_inner) = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => (on, true),
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (on, false),
                _ => return None,
            };
            inner.push(is_inner);
            match constraint {
                JoinConstraint::On(on) => {
                    let mut parts = Vec::new();
                    conjuncts(on, &mut parts);
                    for part in parts {
                        let belongs = self.sort_part(part, items, &using, &mut conditions)?;
                        // A condition of ON that doesn't concern a left join's own table only leaves
                        // that one away.
                        if !is_inner && matches!(belongs, Belongs::Table(item) if item != place) {
                            return None;
                        }
                    }
                }
                JoinConstraint::Using(names) => {
                    for name in names {
                        let [part] = name.0.as_slice() else { return None };
                        let name = ident(part.as_ident()?);
                        let has = |item: &usize| {
                            self.relation_of(&items.list[*item]).is_some_and(|it| it.column(&name).is_some())
                        };
                        let left = (0..place).find(has)?;
                        conditions.equal.push(((left, name.clone()), (place, name.clone())));
                        using.insert(name);
                    }
                }
                _ => return None,
            }
        }
        let mut parts = Vec::new();
        if let Some(condition) = condition {
            conjuncts(condition, &mut parts);
        }
        for part in parts {
            // A condition of WHERE on the missing side of a join takes its rows away.
            let belongs = self.sort_part(part, items, &using, &mut conditions)?;
            match belongs {
                Belongs::Table(item) if inner[item] => {}
                Belongs::Join if inner.iter().all(|inner| *inner) => {}
                _ => return None,
            }
        }
        self.searches_of(items, conditions, &inner)
    }

    fn searches_of(&self, items: &Items, mut conditions: Conditions, inner: &[bool]) -> Option<Vec<Search>> {
        // A constant passes from one column to those that must be equal to it.
        let mut settled = vec![false; conditions.equal.len()];
        loop {
            let mut more = false;
            for (place, (one, other)) in conditions.equal.iter().enumerate() {
                if settled[place] {
                    continue;
                }
                for (from, to) in [(one, other), (other, one)] {
                    // From a side that may be missing nothing passes.
                    let passes = inner[from.0];
                    if let Some(value) = constant(&conditions.own[from.0], &from.1).filter(|_| passes)
                        && self.same_kind(items, from, to)
                    {
                        if constant(&conditions.own[to.0], &to.1).is_none() {
                            conditions.own[to.0].push(Condition::Compare(
                                to.1.clone(),
                                Comparison::Equal,
                                value,
                            ));
                        } else if constant(&conditions.own[to.0], &to.1) != Some(value) {
                            return None;
                        }
                        (settled[place], more) = (true, true);
                        break;
                    }
                }
            }
            if !more {
                break;
            }
        }
        if settled.contains(&false) {
            return None;
        }
        let all_left = inner.iter().skip(1).all(|inner| !inner);
        let mut searches = Vec::new();
        for (place, (item, mut own)) in items.list.iter().zip(conditions.own).enumerate() {
            let relation = self.relation_of(item)?;
            let key = if relation.has_children() { None } else { take_key(relation, &mut own) };
            let condition = match own.len() {
                0 => Condition::True,
                1 => own.remove(0),
                _ => Condition::And(own),
            };
            let when = if place == 0 && all_left { SearchWhen::Always } else { SearchWhen::Found(0) };
            searches.push(Search { key, condition, when });
        }
        Some(searches)
    }

    /// Adds a part of a condition where it belongs; `None` if it can't be evaluated.
    fn sort_part(
        &self,
        part: &Expr,
        items: &Items,
        using: &BTreeSet<String>,
        conditions: &mut Conditions,
    ) -> Option<Belongs> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part
            && let (Some(one), Some(other)) = (self.column_of(left, items), self.column_of(right, items))
            && one.0 != other.0
        {
            conditions.equal.push((one, other));
            return Some(Belongs::Join);
        }
        for (place, item) in items.list.iter().enumerate() {
            let relation = self.relation_of(item)?;
            let table = Table { examiner: self, relation, item };
            if let Some(condition) = table.condition(part) {
                // Without a table, a column must be one of this table alone.
                let alone = |name: &str| {
                    let others = items.list.iter().enumerate().filter(|(other, _)| *other != place);
                    using.contains(name)
                        || !others.into_iter().any(|(_, item)| {
                            self.relation_of(item).is_none_or(|other| other.column(name).is_some())
                        })
                };
                if unqualified(part).iter().all(|name| alone(name)) {
                    if condition != Condition::True {
                        conditions.own[place].push(condition);
                    }
                    return Some(Belongs::Table(place));
                }
                return None;
            }
        }
        None
    }

    /// The table of an item, if it is one of which all rows are meant.
    fn relation_of(&self, item: &Item) -> Option<&Relation> {
        let relation: RelationId = match item.source {
            Source::Table { relation, part: false } => relation,
            _ => return None,
        };
        Some(&self.catalog.relations[self.catalog.root(relation)])
    }

    /// The column that an expression with a table's name denotes.
    fn column_of(&self, expr: &Expr, items: &Items) -> Option<Column> {
        match expr {
            Expr::Nested(inner) => self.column_of(inner, items),
            Expr::CompoundIdentifier(parts) => {
                let [table, name]: &[Ident; 2] = parts.as_slice().try_into().ok()?;
                let place = items.list.iter().position(|item| item.name == ident(table))?;
                let name = ident(name);
                self.relation_of(&items.list[place])?.column(&name)?;
                Some((place, name))
            }
            Expr::Identifier(name) => {
                let name = ident(name);
                let has = |place: &usize| {
                    self.relation_of(&items.list[*place])
                        .is_some_and(|relation| relation.column(&name).is_some())
                };
                let mut places = (0..items.list.len()).filter(has);
                let place = places.next()?;
                places.next().is_none().then_some((place, name))
            }
            _ => None,
        }
    }

    /// True if two columns have values of one comparable kind.
    fn same_kind(&self, items: &Items, one: &Column, other: &Column) -> bool {
        let kind = |column: &Column| {
            let relation = self.relation_of(&items.list[column.0])?;
            Some(relation.columns[relation.column(&column.1)?].kind)
        };
        match (kind(one), kind(other)) {
            (Some(one), Some(other)) => one == other && matches!(one, ColumnType::Integer | ColumnType::Text),
            _ => false,
        }
    }
}

/// The value that a column must have.
fn constant(conditions: &[Condition], name: &str) -> Option<SearchValue> {
    conditions.iter().find_map(|condition| match condition {
        Condition::Compare(column, Comparison::Equal, value) if column == name => Some(value.clone()),
        _ => None,
    })
}

/// The columns in an expression that stand without a table.
fn unqualified(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    let _ = walk(expr, &mut |node| {
        if let Node::Expr(Expr::Identifier(name)) = node {
            names.push(ident(name));
        }
        ControlFlow::Continue(())
    });
    names
}
