//! The columns by which a statement finds rows as its snapshot has them, although it then waits for a row
//! and has its newest version.
//!
//! At read committed PostgreSQL tests the conditions again for the row that was waited for (`EvalPlanQual`),
//! but with the same rows of other tables, and in the order that there was.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, OrderByKind, Query, Select, SelectItem};

use super::condition::conjuncts;
use super::ident;
use super::walk::{Node, walk};

/// A column of one of the tables in FROM.
pub(super) type ColumnAt = (usize, String);

/// The columns that a condition compares with what is of other rows. A subquery that is one value is asked
/// again for a row that was waited for; one of rows is joined.
pub(super) fn joining(condition: &Expr, column_of: &dyn Fn(&Expr) -> Option<ColumnAt>) -> BTreeSet<ColumnAt> {
    let (mut parts, mut found) = (Vec::new(), BTreeSet::new());
    conjuncts(condition, &mut parts);
    for part in parts {
        let (mut columns, mut others, mut depth) = (BTreeSet::new(), false, 0);
        let _ = walk(part, &mut |node| {
            match node {
                Node::Query(_) => depth += 1,
                Node::QueryEnd => depth -= 1,
                Node::Expr(Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::AnyOp { .. }) => {
                    others = true;
                }
                Node::Expr(column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                    match column_of(column) {
                        Some(column) => drop(columns.insert(column)),
                        None => others |= depth == 0,
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        let tables: BTreeSet<usize> = columns.iter().map(|(at, _)| *at).collect();
        if others || tables.len() > 1 {
            found.extend(columns);
        }
    }
    found
}

/// The columns by which a query orders the rows of its tables; `None` if it isn't known which.
pub(super) fn ordering(
    select: &Select,
    query: &Query,
    column_of: &dyn Fn(&Expr) -> Option<ColumnAt>,
) -> Option<Vec<ColumnAt>> {
    let Some(order) = &query.order_by else { return Some(Vec::new()) };
    let OrderByKind::Expressions(all) = &order.kind else { return None };
    // A name alone is first of all that of a column of the result.
    let given = |name: &Ident| {
        let named = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if ident(alias) == ident(name));
        let several = select.from.len() > 1 || select.from.iter().any(|table| !table.joins.is_empty());
        several || select.projection.iter().any(named)
    };
    let column = |expr: &Expr| match expr {
        Expr::Identifier(name) if given(name) => None,
        expr => column_of(expr),
    };
    all.iter().map(|one| column(&one.expr)).collect()
}
