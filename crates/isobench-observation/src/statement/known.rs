//! What a result tells of searches beyond the rows that it shows: a LIMIT that wasn't reached, the
//! answer of EXISTS, a row that is inserted only if there is none.

use isobench_script::{RowLimit, SearchValue, SearchWhen};
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, Query, Select, SelectItem, SetExpr, UnaryOperator, Value,
};

use super::condition::cast_type;
use super::from::Source;
use super::{Examiner, NotUnderstood, Scope, Search, Understood};
use crate::catalog::{ColumnType, RelationId};

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

    /// True if a LIMIT, if there is one, lets a row through.
    fn lets_a_row_through(&self, query: &Query) -> bool {
        self.limit(query).is_ok_and(|limit| {
            limit
                .is_none_or(|limit| limit.offset.is_none() && is_number(limit.rows.as_ref(), |rows| rows > 0))
        })
    }

    /// What a query is limited to; `None` if nothing.
    pub(super) fn limit(&self, query: &Query) -> Understood<Option<RowLimit>> {
        let (mut rows, mut offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                let rows = limit.as_ref().map(|rows| self.count(rows)).transpose()?;
                let offset = offset.as_ref().map(|offset| self.count(&offset.value)).transpose()?;
                (rows, offset)
            }
            Some(_) => return Err(NotUnderstood),
        };
        if let Some(fetch) = &query.fetch {
            if fetch.with_ties || fetch.percent || rows.is_some() {
                return Err(NotUnderstood);
            }
            let one = || Ok(SearchValue::Constant("1".to_owned()));
            rows = Some(fetch.quantity.as_ref().map_or_else(one, |rows| self.count(rows))?);
        }
        rows = rows.filter(|rows| *rows != SearchValue::Null);
        offset = offset.filter(|rows| *rows != SearchValue::Null && !is_number(Some(rows), |rows| rows == 0));
        let any = rows.is_some() || offset.is_some();
        Ok(any.then_some(RowLimit { rows, offset, of: None }))
    }

    /// A number of rows.
    fn count(&self, expr: &Expr) -> Understood<SearchValue> {
        match expr {
            Expr::Nested(inner) => self.count(inner),
            Expr::Cast { expr, data_type, format: None, .. }
                if cast_type(data_type) == Some(ColumnType::Integer) =>
            {
                self.count(expr)
            }
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) if digits.parse::<u32>().is_ok() => {
                    Ok(SearchValue::Constant(digits.clone()))
                }
                Value::Null => Ok(SearchValue::Null),
                Value::Placeholder(name) => {
                    self.number(name).or_else(|| self.parameter(name)).ok_or(NotUnderstood)
                }
                _ => Err(NotUnderstood),
            },
            _ => Err(NotUnderstood),
        }
    }

    /// What a query of one table searches, if it finds a row wherever one matches.
    fn plain_search(&mut self, query: &Query, scope: &Scope) -> Option<(RelationId, Search)> {
        let SetExpr::Select(select) = &*query.body else { return None };
        let plain = query.with.is_none()
            && query.locks.is_empty()
            && self.lets_a_row_through(query)
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

/// The constant number of a LIMIT, OFFSET or FETCH.
fn is_number(value: Option<&SearchValue>, test: impl Fn(u64) -> bool) -> bool {
    matches!(value, Some(SearchValue::Constant(digits)) if digits.parse().is_ok_and(test))
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
