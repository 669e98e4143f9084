//! How a query could be written so that it locks the rows that it reads, or writes them back.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, GroupByExpr, JoinOperator, Select, SetExpr, Statement, TableFactor};

use super::walk::{Node, walk};
use super::{Examiner, ident};
use crate::catalog::RelationId;

/// Other ways to write a query, for the rows of one of its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fix {
    /// What is added at its end to lock the rows, but for the strength: `OF a`, or nothing. `None` if
    /// its rows can't be locked.
    pub lock: Option<String>,
    /// The whole statement as an UPDATE that writes a column back and returns the same. `None` if there
    /// is none.
    pub write: Option<String>,
}

impl Examiner<'_> {
    /// How the query could be written, by table. Empty if it isn't a plain query of tables.
    pub(crate) fn fixes(&self) -> BTreeMap<RelationId, Fix> {
        let mut fixes = BTreeMap::new();
        let Ok(Statement::Query(query)) = self.parse() else { return fixes };
        let SetExpr::Select(select) = &*query.body else { return fixes };
        if query.with.is_some() || !query.locks.is_empty() || !self.shows_rows(select) {
            return fixes;
        }
        let [table] = select.from.as_slice() else { return fixes };
        let inner =
            |operator: &JoinOperator| matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
        let alone = table.joins.is_empty();
        if !table.joins.iter().all(|join| inner(&join.join_operator)) {
            return fixes;
        }
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            let TableFactor::Table { name, alias, args: None, .. } = factor else { return BTreeMap::new() };
            let last = name.0.last().and_then(|part| part.as_ident());
            let known = alias.as_ref().map(|alias| &alias.name).or(last);
            let (Some(relation), Some(known)) = (self.resolved(name), known) else { return BTreeMap::new() };
            let lock = Some(if alone { String::new() } else { format!(" OF {known}") });
            let plain =
                alone && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
            let write = if plain { self.written_back(relation) } else { None };
            // The same table twice: it isn't known which of them is meant.
            let root = self.catalog.root(relation);
            if fixes.insert(root, Fix { lock, write }).is_some() {
                return BTreeMap::new();
            }
        }
        fixes
    }

    /// True if each row of the result is a row of each table.
    fn shows_rows(&self, select: &Select) -> bool {
        let mut plain = select.distinct.is_none()
            && select.having.is_none()
            && select.into.is_none()
            && matches!(&select.group_by, GroupByExpr::Expressions(list, _) if list.is_empty());
        for item in &select.projection {
            let _ = walk(item, &mut |node| {
                if let Node::Expr(Expr::Function(function)) = node {
                    let name = function.name.0.last().and_then(|part| part.as_ident()).map(ident);
                    let facts = self.catalog.function(&name.unwrap_or_default());
                    plain &= !facts.aggregate && !facts.set && function.over.is_none();
                }
                ControlFlow::Continue(())
            });
        }
        plain
    }

    /// The query of one table as an UPDATE.
    fn written_back(&self, relation: RelationId) -> Option<String> {
        let tokens = &self.text.tokens;
        let mut depth = 0_usize;
        let (mut from, mut condition) = (None, None);
        for place in self.range.clone() {
            let token = &tokens[place];
            match token.token.token {
                sqlparser::tokenizer::Token::LParen => depth += 1,
                sqlparser::tokenizer::Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0 && token.is("from") && from.is_none() => from = Some(place),
                _ if depth == 0 && token.is("where") => condition = Some(place),
                _ => {}
            }
        }
        let (from, condition) = (from?, condition?);
        let table = &self.catalog.relations[relation];
        let column = table
            .columns
            .iter()
            .enumerate()
            .find(|(place, column)| !table.key.contains(place) && !column.generated);
        let column = quoted(&column?.1.name);
        let named = |range: std::ops::Range<usize>| self.text.named(&range);
        Some(format!(
            "UPDATE {} SET {column} = {column} WHERE {} RETURNING {}",
            named(from + 1..condition),
            named(condition + 1..self.range.end),
            named(self.range.start + 1..from),
        ))
    }
}

/// A name as SQL needs it.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
