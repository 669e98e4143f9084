//! Finds calls of aggregates, and of functions that return sets, in output columns.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, Visit, Visitor,
};

use super::ident;
use crate::catalog::Catalog;

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
        let _ = part.visit(self);
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
                FunctionArgExpr::Expr(expr) => {
                    let mut outer = Qualifiers { names: self.names, found: false };
                    let _ = expr.visit(&mut outer);
                    outer.found
                }
                FunctionArgExpr::Wildcard => false,
                _ => true,
            }
        })
    }
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.bare.push(select.from.is_empty());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.bare.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.function(function);
        }
        ControlFlow::Continue(())
    }
}

struct Qualifiers<'a> {
    names: &'a BTreeSet<String>,
    found: bool,
}

impl Visitor for Qualifiers<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr {
            self.found |= parts.iter().rev().skip(1).any(|part| self.names.contains(&ident(part)));
        }
        ControlFlow::Continue(())
    }
}
