//! ORDER BY: the columns that decide which rows a LIMIT lets through.
//!
//! A result that LIMIT has cut has all rows that match and come before its last one. Which of the rows
//! are left out that are equal to the last one in the order is the server's choice, and nothing
//! follows from it.

use sqlparser::ast::{Expr, Ident, OrderByExpr, OrderByKind, OrderBySort, Query, Select, SelectItem, Value};

use super::condition::Table;
use super::from::Item;
use super::{Condition, Examiner, Ordered, ident};
use isobench_sql::{ColumnType, Relation};

/// The order of a query's rows.
pub(super) struct Order {
    /// The columns as far as their order is known.
    columns: Vec<Ordered>,
    /// True if these columns decide which rows come first.
    pub decides: bool,
}

impl Order {
    /// The condition of the rows before the last one.
    pub(super) fn before(self) -> Option<Condition> {
        (!self.columns.is_empty()).then_some(Condition::Before(self.columns))
    }
}

impl Examiner<'_> {
    /// The order of a query of one table; `None` if it has none.
    pub(super) fn order(
        &self,
        query: &Query,
        select: &Select,
        (relation, item): (&Relation, &Item),
    ) -> Option<Order> {
        let order = query.order_by.as_ref()?;
        let unknown = Order { columns: Vec::new(), decides: false };
        let OrderByKind::Expressions(list) = &order.kind else { return Some(unknown) };
        let table = Table { examiner: self, relation, item };
        let mut columns: Vec<Ordered> = Vec::new();
        let is_key = |columns: &[Ordered]| {
            let has = |name: &&str| columns.iter().any(|column| column.name == **name);
            relation.key_names().iter().all(has) && !relation.has_children()
        };
        // The values of other columns may have changed when a lock is had.
        let fixed = |name: &str| query.locks.is_empty() || relation.key_names().contains(&name);
        for expr in list {
            if is_key(&columns) {
                break;
            }
            match ordered(&table, select, expr).filter(|column| fixed(&column.name)) {
                Some(column) => columns.push(column),
                None => return Some(Order { columns, decides: false }),
            }
        }
        Some(Order { columns, decides: true })
    }
}

/// A column by which rows are ordered, if the order of its values is known.
fn ordered(table: &Table<'_, '_>, select: &Select, order: &OrderByExpr) -> Option<Ordered> {
    if order.with_fill.is_some() {
        return None;
    }
    let descending = match order.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(_)) => return None,
    };
    let expr = match &order.expr {
        Expr::Identifier(name) => output(select, name, &order.expr)?,
        Expr::Value(value) => match &value.value {
            Value::Number(digits, false) => numbered(select, digits)?,
            _ => return None,
        },
        other => other,
    };
    // A cast may order in another way.
    if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return None;
    }
    let (name, kind) = table.column(expr)?;
    let decimal = kind == ColumnType::Decimal;
    let nulls_first = order.options.nulls_first.unwrap_or(descending);
    (decimal || kind.is_ordered()).then_some(Ordered { name, descending, nulls_first, decimal })
}

/// What a bare name in ORDER BY denotes: an output column before any column of a table. `None` if that
/// isn't known.
fn output<'s>(select: &'s Select, name: &Ident, otherwise: &'s Expr) -> Option<&'s Expr> {
    let wanted = ident(name);
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } if ident(alias) == wanted => return Some(expr),
            SelectItem::UnnamedExpr(expr) if output_name(expr)? == wanted => return Some(expr),
            SelectItem::ExprWithAlias { .. }
            | SelectItem::UnnamedExpr(_)
            | SelectItem::Wildcard(_)
            | SelectItem::QualifiedWildcard(..) => {}
            SelectItem::ExprWithAliases { .. } => return None,
        }
    }
    Some(otherwise)
}

/// The output column with a number, from 1.
fn numbered<'s>(select: &'s Select, digits: &str) -> Option<&'s Expr> {
    let place: usize = digits.parse().ok()?;
    let known =
        |item: &&SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    match select.projection.iter().take_while(known).nth(place.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The name that the server gives to an output column without one (PostgreSQL manual, "Column
/// Labels"; the rest of its rules by trying).
fn output_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => output_name(inner),
        Expr::Identifier(name) => Some(ident(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(ident),
        Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()).map(ident),
        Expr::Exists { .. } => Some("exists".to_owned()),
        // That of a value's type is the server's own name.
        Expr::Cast { expr, .. } => own_name(expr),
        Expr::Case { else_result, .. } => {
            Some(else_result.as_deref().and_then(own_name).unwrap_or_else(|| "case".to_owned()))
        }
        Expr::Value(_) | Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => Some("?column?".to_owned()),
        _ => None,
    }
}

/// The name that an expression has by itself: that of a column or of a function. Casts and CASE keep it.
fn own_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => own_name(inner),
        Expr::Case { else_result, .. } => else_result.as_deref().and_then(own_name),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) => output_name(expr),
        _ => None,
    }
}
