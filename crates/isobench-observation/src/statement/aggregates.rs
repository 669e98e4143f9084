//! Finds calls of aggregates, and of functions that return sets, in output columns.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Visit};

use super::ident;
use super::walk::{Node, walk};
use isobench_sql::Catalog;

/// What output columns call.
pub(super) struct Calls<'a> {
    catalog: &'a Catalog,
    /// The names of the query's tables.
    names: &'a BTreeSet<String>,
    /// The number of subqueries around the expression.
    depth: usize,
    /// For each subquery, whether it lacks FROM.
    bare: Vec<bool>,
    pub aggregate: bool,
    pub set: bool,
    /// True if an aggregate in a subquery may be one of the outer query.
    pub doubtful: bool,
}

impl<'a> Calls<'a> {
    pub(super) fn new(catalog: &'a Catalog, names: &'a BTreeSet<String>) -> Self {
        Self { catalog, names, depth: 0, bare: Vec::new(), aggregate: false, set: false, doubtful: false }
    }

    pub(super) fn look(&mut self, part: &impl Visit) {
        let _ = walk(part, &mut |node| {
            match node {
                Node::Query(_) => self.depth += 1,
                Node::QueryEnd => self.depth -= 1,
                Node::Select(select) => self.bare.push(select.from.is_empty()),
                Node::SelectEnd => {
                    self.bare.pop();
                }
                Node::Expr(Expr::Function(function)) => self.function(function),
                Node::Relation(_) | Node::Expr(_) => {}
            }
            ControlFlow::Continue(())
        });
    }

    fn function(&mut self, function: &Function) {
        let Some(name) = function.name.0.last().and_then(|part| part.as_ident()).map(ident) else {
            self.doubtful = true;
            return;
        };
        let facts = self.catalog.function(&name);
        let aggregate = facts.aggregate && function.over.is_none();
        // A name of both kinds doesn't tell which function is called.
        self.doubtful |= aggregate && facts.plain;
        if self.depth == 0 {
            self.aggregate |= aggregate;
            self.set |= facts.set;
        } else if aggregate {
            let bare = self.bare.last().copied().unwrap_or(true);
            self.doubtful |= bare || self.mentions_outer(function);
        }
    }

    /// True if an argument is a column of the outer query, by its qualifier.
    fn mentions_outer(&self, function: &Function) -> bool {
        let FunctionArguments::List(list) = &function.args else { return true };
        list.args.iter().any(|arg| {
            let (FunctionArg::Unnamed(arg)
            | FunctionArg::Named { arg, .. }
            | FunctionArg::ExprNamed { arg, .. }) = arg;
            match arg {
                FunctionArgExpr::Expr(expr) => self.qualifies(expr),
                FunctionArgExpr::Wildcard => false,
                _ => true,
            }
        })
    }
    /// True if an expression has a column that is qualified by one of the query's tables.
    fn qualifies(&self, expr: &Expr) -> bool {
        let look = &mut |node: Node<'_>| match node {
            Node::Expr(Expr::CompoundIdentifier(parts))
                if parts.iter().rev().skip(1).any(|part| self.names.contains(&ident(part))) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        walk(expr, look).is_break()
    }
}
