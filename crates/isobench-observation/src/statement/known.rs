//! What a result tells of searches beyond the rows that it shows: a LIMIT that wasn't reached, the
//! answer of EXISTS, a row that is inserted only if there is none.

use isobench_isolation::observed::Comparison;
use isobench_script::{RowLimit, SearchValue, SearchWhen};
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    UnaryOperator, Value,
};

use super::condition::{Table, cast_type};
use super::from::{Item, Source};
use super::joined::all_of;
use super::walk::conjuncts;
use super::{Condition, Examiner, NotUnderstood, Scope, Search, Understood, ident};
use isobench_sql::{ColumnType, Inheritance, RelationId, RelationKind};

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
            if let Some((subquery, nothing)) = exists(expr) {
                let when = |truth| SearchWhen::Column(column, truth == nothing);
                self.note_answer(subquery, scope, when(true), when(false));
            }
        }
    }

    /// Adds what a SELECT tells whose only row is there if an EXISTS is true.
    pub(super) fn answer_of_row(&mut self, select: &Select, scope: &Scope) {
        let one_row = match select.from.as_slice() {
            [] => true,
            [TableWithJoins { relation: TableFactor::Derived { subquery, .. }, joins }] => {
                joins.is_empty() && is_constant_row(subquery)
            }
            _ => false,
        };
        let Some((subquery, nothing)) = select.selection.as_ref().and_then(exists) else { return };
        if !one_row || is_grouped(select) || !select.projection.iter().all(is_constant) {
            return;
        }
        let when = |none: bool| if none == nothing { SearchWhen::Nonempty } else { SearchWhen::Empty };
        self.note_answer(subquery, scope, when(true), when(false));
    }

    /// Notes what is known of the rows that an EXISTS looked for if it found none, and if it found one.
    fn note_answer(&mut self, subquery: &Query, scope: &Scope, none: SearchWhen, one: SearchWhen) {
        let before = self.handled.clone();
        let Some((table, search)) = self.plain_search(subquery, scope, true) else {
            self.handled = before;
            return;
        };
        if self.finds_one_row(table, &search) {
            let condition = Condition::Found(Box::new(search.condition.clone()));
            self.found.denials.push((table, Search { condition, when: one, ..search.clone() }));
        } else {
            // A row that is found isn't shown.
            self.handled = before;
        }
        self.found.denials.push((table, Search { when: none, ..search }));
    }

    /// The search of a SELECT of one table for rows that refer to those of a subquery by their key,
    /// `column IN (SELECT key FROM …)`, and notes those of the subquery's table. `None` if it is none.
    pub(super) fn search_by_key_of_others(
        &mut self,
        relation: RelationId,
        item: &Item,
        condition: &Expr,
        scope: &Scope,
    ) -> Option<Search> {
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let place = parts.iter().position(|part| matches!(part, Expr::InSubquery { negated: false, .. }))?;
        let Expr::InSubquery { expr, subquery, .. } = parts.remove(place) else { return None };
        let own = &self.catalog.relations[self.catalog.root(relation)];
        let table = Table { examiner: self, relation: own, item };
        let (column, kind) = table.column(expr)?;
        let mut conditions = Vec::with_capacity(parts.len());
        for part in parts {
            conditions.push(table.condition(part)?);
        }
        conditions.retain(|condition| *condition != Condition::True);
        if subquery.limit_clause.is_some() || subquery.fetch.is_some() {
            return None;
        }
        let before = self.handled.clone();
        let found = self.plain_search(subquery, scope, true);
        let searched = found.and_then(|(other, search)| {
            let there = &self.catalog.relations[other];
            let [key] = there.key.as_slice() else { return None };
            let key = &there.columns[*key];
            let understood = key.kind == kind
                && matches!(kind, ColumnType::Integer | ColumnType::Text | ColumnType::Uuid)
                && !there.has_children()
                && search.key.is_none()
                && search.condition.lists() == 0
                && selects(subquery, &key.name);
            understood.then(|| (other, key.name.clone(), search))
        });
        let Some((other, key, search)) = searched else {
            self.handled = before;
            return None;
        };
        let mut there = vec![search.condition.clone()];
        there.retain(|condition| *condition != Condition::True);
        there.push(Condition::Linked {
            table: self.catalog.root(relation),
            pairs: vec![(key.clone(), column.clone())],
            condition: Box::new(all_of(conditions.clone())),
        });
        let referred = |each: bool| Some((0, column.clone(), each));
        let found = Condition::Found(Box::new(search.condition.clone()));
        self.found.denials.extend([
            (other, Search { condition: all_of(there), referred: referred(false), ..search.clone() }),
            (other, Search { condition: found, referred: referred(true), ..search.clone() }),
        ]);
        conditions.push(Condition::Linked {
            table: other,
            pairs: vec![(column, key)],
            condition: Box::new(search.condition),
        });
        Self::search_by(&self.catalog.relations[self.catalog.root(relation)], conditions)
    }

    /// True if at most one row can match a search: it requires all columns of a unique index to have
    /// values.
    fn finds_one_row(&self, table: RelationId, search: &Search) -> bool {
        let relation = &self.catalog.relations[table];
        let parts = match &search.condition {
            Condition::And(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let has = |column: &usize| {
            parts.iter().any(|part| match part {
                Condition::Compare(name, Comparison::Equal, value) => {
                    *name == relation.columns[*column].name && *value != SearchValue::Null
                }
                _ => false,
            })
        };
        let alone = relation.kind == RelationKind::Table && relation.inheritance == Inheritance::None;
        search.key.is_some() || alone && relation.unique.iter().any(|index| index.iter().all(has))
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
            conjuncts(condition, &mut parts);
        }
        for part in parts {
            if let Some((subquery, true)) = exists(part)
                && let Some((table, search)) = self.plain_search(subquery, scope, false)
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

    /// What a query of one table searches, if it finds a row wherever one matches. Unless it is the
    /// `whole` of what the query does, the table is still one of a subquery.
    fn plain_search(&mut self, query: &Query, scope: &Scope, whole: bool) -> Option<(RelationId, Search)> {
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
        if !whole {
            self.handled = handled;
        }
        let items = items.ok()?;
        let [item] = items.list.as_slice() else { return None };
        let Source::Table { relation, part: false } = item.source else { return None };
        let search = self.condition(relation, item, select.selection.as_ref())?;
        Some((self.catalog.root(relation), search))
    }
}

/// True if a query of one table has its column of this name for a result.
fn selects(query: &Query, name: &str) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
        select.projection.as_slice()
    else {
        return false;
    };
    match expr {
        Expr::Identifier(column) => ident(column) == name,
        Expr::CompoundIdentifier(parts) => {
            let known = select.from.first().and_then(|from| match &from.relation {
                TableFactor::Table { name, alias, .. } => match alias {
                    Some(alias) => Some(ident(&alias.name)),
                    None => name.0.last().and_then(|part| part.as_ident()).map(ident),
                },
                _ => None,
            });
            matches!(parts.as_slice(), [table, column] if Some(ident(table)) == known && ident(column) == name)
        }
        _ => false,
    }
}

/// True if a query is one row of constants.
fn is_constant_row(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.from.is_empty()
        && select.selection.is_none()
        && !is_grouped(select)
        && select.projection.iter().all(is_constant)
}

fn is_constant(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::UnnamedExpr(Expr::Value(_)) | SelectItem::ExprWithAlias { expr: Expr::Value(_), .. }
    )
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
