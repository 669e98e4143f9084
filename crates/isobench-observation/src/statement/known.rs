//! What a result tells of searches beyond the rows that it shows: a LIMIT that wasn't reached, the
//! answer of EXISTS, a row that is inserted only if there is none.

use isobench_script::SearchWhen;
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, Query, Select, SelectItem, SetExpr, UnaryOperator, Value,
};

use super::from::Source;
use super::{Examiner, Scope, Search};
use crate::catalog::RelationId;

impl Examiner<'_> {
    /// Adds what the answers of EXISTS among the output columns of a SELECT without FROM tell.
    pub(super) fn answers(&mut self, select: &Select, scope: &Scope) {
        if !select.from.is_empty() || select.selection.is_some() || select.having.is_some() {
            return;
        }
        for (place, item) in select.projection.iter().enumerate() {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                return;
            };
            let Ok(column) = u16::try_from(place) else { return };
            if let Some((subquery, nothing)) = exists(expr)
                && let Some((table, search)) = self.plain_search(subquery, scope)
            {
                let when = SearchWhen::Column(column, nothing);
                self.found.denials.push((table, Search { when, ..search }));
            }
        }
    }

    /// Adds what an INSERT tells by the row that it inserted, the entry `shown` of the statement:
    /// `INSERT INTO t SELECT … WHERE NOT EXISTS (…)`.
    pub(super) fn inserted_if_none(&mut self, source: &Query, scope: &Scope, shown: usize) {
        let SetExpr::Select(select) = &*source.body else { return };
        if !select.from.is_empty() || source.with.is_some() || is_grouped(select) {
            return;
        }
        let mut parts = Vec::new();
        if let Some(condition) = &select.selection {
            super::condition::conjuncts(condition, &mut parts);
        }
        for part in parts {
            if let Some((subquery, true)) = exists(part)
                && let Some((table, search)) = self.plain_search(subquery, scope)
            {
                let when = SearchWhen::Found(shown);
                self.found.denials.push((table, Search { when, ..search }));
            }
        }
    }

    /// What a query of one table searches, if it finds a row wherever one matches.
    fn plain_search(&mut self, query: &Query, scope: &Scope) -> Option<(RelationId, Search)> {
        let SetExpr::Select(select) = &*query.body else { return None };
        let plain = query.with.is_none()
            && query.locks.is_empty()
            && is_unlimited(query)
            && !is_grouped(select)
            && select.into.is_none();
        if !plain || select.from.len() != 1 {
            return None;
        }
        // What is noted of it as of any subquery stays: a row that is found isn't shown.
        let handled = self.handled.clone();
        let items = self.items(&select.from, scope);
        self.handled = handled;
        let items = items.ok()?;
        let [item] = items.list.as_slice() else { return None };
        let Source::Table { relation, part: false } = item.source else { return None };
        let search = self.condition(relation, item, select.selection.as_ref())?;
        Some((self.catalog.root(relation), search))
    }
}

/// The subquery of an EXISTS, and the answer that means that it found nothing.
fn exists(expr: &Expr) -> Option<(&Query, bool)> {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, format: None, .. } => exists(inner),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let (query, nothing) = exists(expr)?;
            Some((query, !nothing))
        }
        Expr::Exists { subquery, negated } => Some((subquery, *negated)),
        _ => None,
    }
}

fn is_grouped(select: &Select) -> bool {
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(list, modifiers) => !list.is_empty() || !modifiers.is_empty(),
    };
    // An aggregate has a row whatever it finds.
    let plain = |item: &SelectItem| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return matches!(item, SelectItem::Wildcard(_));
        };
        matches!(expr, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_))
    };
    let listed = select.from.is_empty() || select.projection.iter().all(plain);
    grouped || select.having.is_some() || select.distinct.is_some() || !listed
}

/// True if a LIMIT, if there is one, lets a row through.
fn is_unlimited(query: &Query) -> bool {
    query.fetch.is_none()
        && match &query.limit_clause {
            None => true,
            Some(_) => limit(query).is_some_and(|rows| rows > 0),
        }
}

/// The number of a LIMIT without OFFSET.
pub(super) fn limit(query: &Query) -> Option<u64> {
    match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit: Some(Expr::Value(value)), offset: None, limit_by })
            if limit_by.is_empty() && query.fetch.is_none() =>
        {
            match &value.value {
                Value::Number(digits, _) => digits.parse().ok(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// True if a query asks whether there is a row, and nothing of it: `SELECT 1 FROM t … LIMIT 1`.
pub(super) fn asks_for_existence(query: &Query, select: &Select) -> bool {
    let constant = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(Expr::Value(_)) | SelectItem::ExprWithAlias { expr: Expr::Value(_), .. }
        )
    };
    limit(query) == Some(1) && query.order_by.is_none() && select.projection.iter().all(constant)
}

/// The output column, from 0, that is `count(*)` as it stands.
pub(super) fn count_of_all(select: &Select) -> Option<u16> {
    let counts = |item: &SelectItem| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return false;
        };
        let Expr::Function(function) = expr else { return false };
        let plain = function.filter.is_none() && function.over.is_none() && function.within_group.is_empty();
        plain && function.to_string().eq_ignore_ascii_case("count(*)")
    };
    // A `*` before it stands for any number of columns.
    let known =
        |item: &&SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let place = select.projection.iter().take_while(known).position(counts)?;
    u16::try_from(place).ok()
}
