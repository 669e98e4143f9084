//! A walk through the parts of a statement.
//!
//! Each type of visitor has code of its own for every part of SQL, so all walks share one.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, ObjectName, Query, Select, Visit, Visitor};

/// What a walk meets, a whole before its parts.
#[derive(Clone, Copy)]
pub(super) enum Node<'n> {
    Query(&'n Query),
    /// The end of the query that was met last and hasn't ended.
    QueryEnd,
    Select(&'n Select),
    /// Like `QueryEnd`.
    SelectEnd,
    /// The name of a relation.
    Relation(&'n ObjectName),
    Expr(&'n Expr),
}

/// Walks through a part of a statement, in the order of its text, until `look` breaks off.
pub(super) fn walk(part: &impl Visit, look: &mut dyn FnMut(Node<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    part.visit(&mut Walk(look))
}

struct Walk<'l>(&'l mut dyn FnMut(Node<'_>) -> ControlFlow<()>);

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        (self.0)(Node::Query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        (self.0)(Node::QueryEnd)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        (self.0)(Node::Select(select))
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        (self.0)(Node::SelectEnd)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        (self.0)(Node::Relation(relation))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        (self.0)(Node::Expr(expr))
    }
}

/// The parts of a condition that are joined by AND.
pub(super) fn conjuncts<'e>(condition: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match condition {
        Expr::Nested(inner) => conjuncts(inner, parts),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        other => parts.push(other),
    }
}
