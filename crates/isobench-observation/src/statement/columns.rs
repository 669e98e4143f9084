//! The columns that a statement mentions, and those that it changes.
//!
//! A row that another transaction changes in other columns is the same to who reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    AssignmentTarget, Expr, Insert, ObjectName, Query, SelectItem, SetExpr, Statement, TableFactor,
    TableObject, Update, Visit,
};

use super::walk::{Node, walk};
use super::write::assigned;
use super::{Examiner, ident};
use crate::catalog::{Inheritance, Relation, RelationId, RelationKind};

/// Names of columns, each with the number of times that it is mentioned.
pub(crate) type Counted = BTreeMap<String, usize>;

impl Examiner<'_> {
    /// The names of all columns that a statement mentions; `None` if it may use any: of `*`, of a whole
    /// row, of a view's query, a policy or a user's function.
    pub(super) fn uses(&self, statement: &Statement) -> Option<Counted> {
        let joined = |word: &str| self.text.tokens[self.range.clone()].iter().any(|token| token.is(word));
        if joined("natural") || joined("using") || !self.partial_targets().is_empty() {
            return None;
        }
        let star = match statement {
            Statement::Query(query) => self.star(query).map(|(_, columns)| columns),
            _ => None,
        };
        let mut mentions = Mentions { star, ..Mentions::default() };
        if walk(statement, &mut |node| mentions.note(node)).is_break()
            || returning(statement).iter().any(is_wildcard)
        {
            return None;
        }
        let reads = |name: &String| self.catalog.functions.get(name).is_some_and(|facts| facts.reads);
        if mentions.functions.iter().any(reads) {
            return None;
        }
        let relations: Vec<&Relation> = mentions
            .relations
            .iter()
            .filter_map(|name| self.resolved(name))
            .map(|relation| &self.catalog.relations[relation])
            .collect();
        let hidden = |relation: &&Relation| {
            let table = matches!(relation.kind, RelationKind::Table | RelationKind::Partitioned);
            !table || relation.row_security
        };
        let read_by_triggers =
            |relation: &&Relation| relation.triggers.reads_row || !relation.triggers.reads.is_empty();
        if relations.iter().any(hidden) || self.may_write() && relations.iter().any(read_by_triggers) {
            return None;
        }
        let is_column = |name: &String| relations.iter().any(|relation| relation.column(name).is_some());
        let unknown = |name: &&String| !is_column(name) && !mentions.aliases.contains(*name);
        if mentions.names.keys().any(|name| unknown(&name)) {
            return None;
        }
        Some(mentions.names.into_iter().filter(|(name, _)| is_column(name)).collect())
    }

    /// The table of an INSERT that only adds rows to it, whatever is in it.
    pub(crate) fn only_inserts(&self) -> Option<RelationId> {
        let statement = self.parse().ok()?;
        let Statement::Insert(Insert { table: TableObject::TableName(name), on: None, .. }) = &statement
        else {
            return None;
        };
        let table = self.catalog.root(self.resolved(name)?);
        let relation = &self.catalog.relations[table];
        let plain = !relation.rules && !self.catalog.triggers(table).may(|event| event.insert);
        let mut named = 0;
        let _ = walk(&statement, &mut |node| {
            if let Node::Relation(name) = node {
                let same = self.resolved(name).is_none_or(|other| self.catalog.root(other) == table);
                named += usize::from(same);
            }
            ControlFlow::Continue(())
        });
        (plain && named <= 1 && self.uses(&statement).is_some()).then_some(table)
    }

    /// The columns of `SELECT * FROM t`, by which it mentions each of a table's.
    pub(super) fn star(&self, query: &Query) -> Option<(RelationId, Vec<String>)> {
        let (None, SetExpr::Select(select)) = (&query.with, &*query.body) else { return None };
        let ([SelectItem::Wildcard(_)], [from]) = (&select.projection[..], &select.from[..]) else {
            return None;
        };
        let TableFactor::Table { name, alias, args: None, .. } = &from.relation else { return None };
        let plain = from.joins.is_empty() && alias.as_ref().is_none_or(|alias| alias.columns.is_empty());
        let table = self.resolved(name).filter(|_| plain)?;
        let relation = &self.catalog.relations[table];
        let stores = matches!(relation.kind, RelationKind::Table | RelationKind::Partitioned);
        let columns = relation.columns.iter().map(|column| column.name.clone()).collect();
        stores.then(|| (self.catalog.root(table), columns))
    }

    /// The columns that an UPDATE of a table changes: those that it assigns, and those that are generated.
    pub(super) fn sets(&self, update: &Update, target: RelationId) -> Option<BTreeSet<String>> {
        let relation = &self.catalog.relations[target];
        let plain = relation.kind == RelationKind::Table
            && matches!(relation.inheritance, Inheritance::None)
            && !(relation.triggers.may(|event| event.update) || relation.rules);
        if !plain {
            return None;
        }
        let mut set = assigned(&update.assignments).ok()?;
        set.extend(relation.triggers.on_update.iter().cloned());
        set.extend(
            relation.columns.iter().filter(|column| column.generated).map(|column| column.name.clone()),
        );
        Some(set)
    }
}

/// The names that each output column of a statement mentions.
pub(super) fn outputs(statement: &Statement) -> Vec<Counted> {
    let items = match statement {
        Statement::Query(query) => match &*query.body {
            SetExpr::Select(select) => select.projection.as_slice(),
            SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => returning(inner),
            _ => &[],
        },
        _ => returning(statement),
    };
    items.iter().map(mentioned).collect()
}

/// The mentions of columns in what they are set to themselves, as in `SET n = n + 1`, if nothing else is
/// mentioned there.
pub(super) fn kept_up(update: &Update) -> Counted {
    let own = update.assignments.iter().filter_map(|assignment| {
        let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
        let column = ident(name.0.last()?.as_ident()?);
        let mentioned = mentioned(&assignment.value);
        let alone = mentioned.keys().all(|other| *other == column);
        alone.then(|| mentioned.into_iter().next()).flatten()
    });
    own.collect()
}

/// The names that a part of a statement mentions.
fn mentioned(part: &impl Visit) -> Counted {
    let mut mentions = Mentions::default();
    // Where the walk breaks off, the whole statement's has done so before.
    let _ = walk(part, &mut |node| mentions.note(node));
    mentions.names
}

/// What a statement's text mentions. The walk breaks off where it isn't only names.
#[derive(Default)]
struct Mentions {
    names: Counted,
    aliases: BTreeSet<String>,
    relations: Vec<ObjectName>,
    functions: BTreeSet<String>,
    /// What the outermost query's `*` stands for, until that has been met.
    star: Option<Vec<String>>,
}

impl Mentions {
    fn note(&mut self, node: Node<'_>) -> ControlFlow<()> {
        match node {
            Node::Query(query) => return self.projections(&query.body),
            Node::Relation(relation) => self.relations.push(relation.clone()),
            Node::Expr(Expr::Identifier(name)) => {
                *self.names.entry(ident(name)).or_default() += 1;
            }
            Node::Expr(Expr::CompoundIdentifier(parts)) => {
                if let Some(last) = parts.last() {
                    *self.names.entry(ident(last)).or_default() += 1;
                }
            }
            Node::Expr(Expr::Function(function)) => {
                self.functions.extend(function.name.0.last().and_then(|part| part.as_ident()).map(ident));
            }
            Node::Expr(Expr::Wildcard(_) | Expr::QualifiedWildcard(..)) => return ControlFlow::Break(()),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Notes the aliases of output columns, and breaks off at a wildcard.
    fn projections(&mut self, body: &SetExpr) -> ControlFlow<()> {
        match body {
            SetExpr::Select(select) => {
                let star = self.star.take();
                if select.projection.iter().any(is_wildcard) {
                    let Some(columns) = star else { return ControlFlow::Break(()) };
                    for column in columns {
                        *self.names.entry(column).or_default() += 1;
                    }
                }
                self.aliases.extend(select.projection.iter().filter_map(|item| match item {
                    SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
                    _ => None,
                }));
                ControlFlow::Continue(())
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.projections(left)?;
                self.projections(right)
            }
            // Parentheses have a query of their own, which is visited.
            SetExpr::Query(_) | SetExpr::Values(_) => ControlFlow::Continue(()),
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                if returning(statement).iter().any(is_wildcard) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
            _ => ControlFlow::Break(()),
        }
    }
}

pub(super) fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// The output columns of a statement that writes.
pub(super) fn returning(statement: &Statement) -> &[SelectItem] {
    let returning = match statement {
        Statement::Insert(insert) => insert.returning.as_deref(),
        Statement::Update(update) => update.returning.as_deref(),
        Statement::Delete(delete) => delete.returning.as_deref(),
        _ => None,
    };
    returning.unwrap_or_default()
}
