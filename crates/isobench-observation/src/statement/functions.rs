//! The functions and operators that a statement calls, by its tokens, and the tables that it
//! mentions outside its own lists.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Statement};
use sqlparser::tokenizer::Token;

use super::walk::{Node, walk};
use super::{Examiner, ident};
use crate::dark::Dark;
use isobench_sql::{RelationId, RelationKind, Unobservable};

impl Examiner<'_> {
    /// Notes the functions and operators that may read or write tables. By tokens, so that no place
    /// where SQL allows a call is forgotten.
    pub(super) fn calls(&mut self) {
        let written = self.text.written(&self.range);
        for operator in self.catalog.writing_operators.iter().filter(|name| written.contains(name.as_str())) {
            self.found.dark.push(Dark::Operator { name: operator.clone(), writes: true });
            self.found.writes_anything = true;
        }
        let reading = self.catalog.operators.difference(&self.catalog.writing_operators);
        for operator in reading.filter(|name| written.contains(name.as_str())) {
            self.found.dark.push(Dark::Operator { name: operator.clone(), writes: false });
        }
        let mut seen = BTreeSet::new();
        for place in self.range.clone() {
            let token = &self.text.tokens[place];
            let Some(name) = token.name() else { continue };
            let next = self.range.contains(&(place + 1)).then(|| &self.text.tokens[place + 1].token.token);
            let before = place.checked_sub(1).map(|place| &self.text.tokens[place]);
            let facts = self.catalog.function(&name);
            let called = matches!(next, Some(Token::LParen)) && !before.is_some_and(|token| token.is("into"));
            // `t.f` calls f(t) if there is no such column.
            let as_column = before.is_some_and(|token| token.token.token == Token::Period)
                && !self.catalog.relations.iter().any(|relation| relation.column(&name).is_some());
            if (called || as_column) && (facts.writes || facts.reads) && seen.insert(name.clone()) {
                self.found.writes_anything |= facts.writes;
                self.found.dark.push(Dark::Function { name, writes: facts.writes });
            }
        }
    }

    /// Notes the tables that nothing else has dealt with: those of subqueries.
    pub(super) fn remaining_tables(&mut self, statement: &Statement) {
        let (names, ctes) = relations(statement);
        let mut noted = BTreeSet::new();
        for name in &names {
            let Ok(parts) = self.parts(name) else { continue };
            let Some((first, place)) = parts.first().copied() else { continue };
            let end = parts.last().map_or(place, |(_, place)| *place) + 1;
            let function = self.range.contains(&end) && self.text.tokens[end].token.token == Token::LParen;
            // Where a WITH query has the name of a table, either may be meant.
            let cte = parts.len() == 1 && ctes.contains(&ident(first)) && self.resolved(name).is_none();
            if function || cte || self.handled.contains(&place) || !noted.insert(name.to_string()) {
                continue;
            }
            if let Some(relation) = self.relation(name, true) {
                let table = self.catalog.relations[self.catalog.root(relation)].qualified();
                self.found.dark.push(Dark::Subquery { table });
            }
        }
    }

    /// The relation that a name denotes, if its rows can be observed; otherwise the reason is noted.
    pub(super) fn relation(&mut self, name: &ObjectName, read: bool) -> Option<RelationId> {
        let last = name.0.last().and_then(|part| part.as_ident()).map(ident).unwrap_or_default();
        let Some(relation) = self.resolved(name) else {
            self.found.writes_anything |= !read;
            let dark = if self.surroundings.changed.contains(&last) {
                Dark::Changed { table: last }
            } else {
                Dark::UnknownTable { name: name.to_string() }
            };
            self.note(dark);
            return None;
        };
        let facts = &self.catalog.relations[relation];
        let table = facts.qualified();
        let views_write = || {
            self.catalog.relations.iter().any(|other| other.kind == RelationKind::View && other.calls_writing)
        };
        if facts.kind == RelationKind::View && views_write() {
            self.found.writes_anything = true;
            self.note(Dark::Calls { table: table.clone() });
        }
        if facts.kind == RelationKind::System {
            return None;
        }
        let root = &self.catalog.relations[self.catalog.root(relation)];
        let dark =
            if self.surroundings.changed.contains(&last) || self.surroundings.changed.contains(&root.name) {
                Some(Dark::Changed { table })
            } else {
                let printed = self.surroundings.printed && root.key_depends_on_session();
                let reason = self.catalog.unobservable(relation);
                let reason = reason.or_else(|| printed.then_some(Unobservable::Printed));
                reason.map(|reason| Dark::Table { table, reason })
            };
        match dark {
            None => Some(relation),
            Some(dark) => {
                let plain =
                    matches!(facts.kind, RelationKind::Table | RelationKind::Partitioned) && !facts.rules;
                // A view, a rule or a foreign table may write elsewhere.
                self.found.writes_anything |= !read && !plain;
                self.note(dark);
                None
            }
        }
    }

    /// Notes what isn't seen, once.
    pub(super) fn note(&mut self, dark: Dark) {
        if !self.found.dark.contains(&dark) {
            self.found.dark.push(dark);
        }
    }
}

/// The names of relations, and of common table expressions.
fn relations(statement: &Statement) -> (Vec<ObjectName>, BTreeSet<String>) {
    let (mut names, mut ctes) = (Vec::new(), BTreeSet::new());
    let _ = walk(statement, &mut |node| {
        match node {
            Node::Relation(relation) => names.push(relation.clone()),
            Node::Query(query) => {
                let with = query.with.iter().flat_map(|with| &with.cte_tables);
                ctes.extend(with.map(|cte| ident(&cte.alias.name)));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    (names, ctes)
}
