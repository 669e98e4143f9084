//! How a query could be written so that it locks the rows that it reads, or writes them back; and how an
//! UPDATE could be, so that it depends on fewer values that were read before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use isobench_robustness::Strength;
use isobench_script::Slot;
use sqlparser::ast::{Expr, GroupByExpr, JoinOperator, Select, SetExpr, Statement, TableFactor};
use sqlparser::tokenizer::Token;

use super::names::name_in_sql;
use super::walk::{Node, walk};
use super::{Examiner, ident};
use crate::catalog::RelationId;

/// Other ways to write a query, for the rows of one of its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fix {
    /// What is added at its end to lock the rows, but for the strength: `OF a`, or nothing. `None` if
    /// its rows can't be locked.
    pub lock: Option<String>,
    /// The weaker lock that it has already, as written, at its end; the other one takes its place.
    pub weaker: Option<String>,
    /// The whole statement as an UPDATE that writes a column back and returns the same. `None` if there
    /// is none.
    pub write: Option<String>,
}

/// A statement that can lock rows by more than a clause at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWithin {
    /// The statement as far as the lock, with the names of variables.
    pub before: String,
    /// The rest.
    pub after: String,
    /// Rows that others have locked are passed over.
    pub skips_locked: bool,
}

impl LockWithin {
    /// The lock.
    pub fn clause(&self) -> &'static str {
        if self.skips_locked { "FOR UPDATE SKIP LOCKED" } else { Strength::NoKeyUpdate.clause() }
    }

    /// The statement with it.
    pub fn text(&self) -> String {
        self.with(self.clause())
    }

    /// The statement with another lock in its place.
    pub fn with(&self, clause: &str) -> String {
        format!("{} {clause}{}", self.before, self.after)
    }
}

/// An UPDATE or DELETE, where a further condition can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conditioned {
    /// The statement as far as the end of its condition, with the names of variables.
    pub before: String,
    /// The rest.
    pub after: String,
}

/// `column = value` in an UPDATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub column: String,
    /// The column as written.
    written: String,
    /// The tokens of the value.
    value: Range<usize>,
    /// Variables that are added in it to something, or the value itself, with their tokens.
    pub added: Vec<(Slot, usize)>,
    /// It is something plus a number above 0: a variable, or the column itself.
    pub raised: Option<Raised>,
}

/// What is raised by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raised {
    Itself,
    Variable(Slot),
}

impl Assignment {
    /// The variable that the value consists of.
    pub(crate) fn whole(&self) -> Option<Slot> {
        let [(slot, at)] = self.added.as_slice() else { return None };
        (self.value == (*at..at + 1)).then_some(*slot)
    }
}

/// What becomes of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assigned {
    /// It stays.
    Kept,
    /// It is left out.
    LeftOut,
    /// The variable at this token becomes the column itself, with this text after it.
    Relative(usize, String),
}

/// An UPDATE that depends on fewer values that were read before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The whole statement, with the names of variables.
    pub text: String,
    /// What it sets now: `SET stock = stock - :quantity`.
    pub sets: String,
}

impl Examiner<'_> {
    /// The assignments of a plain UPDATE, in order, and the tokens of all of them. `None` if they aren't
    /// a column and a value each.
    pub(crate) fn assignments(&self) -> Option<(Vec<Assignment>, Range<usize>)> {
        let Ok(Statement::Update(_)) = self.parse() else { return None };
        let tokens = &self.text.tokens;
        let depths = self.depths();
        let at = |words: &[&str]| {
            let range = self.range.clone();
            range
                .zip(&depths)
                .find(|(place, depth)| **depth == 0 && words.iter().any(|word| tokens[*place].is(word)))
        };
        let start = at(&["set"])?.0 + 1;
        let end = at(&["from", "where", "returning"]).map_or(self.range.end, |(place, _)| place);
        let depth = |place: usize| depths[place - self.range.start];
        let comma = |place: &usize| tokens[*place].token.token == Token::Comma && depth(*place) == 0;
        let mut found = Vec::new();
        let mut from = start;
        for stop in (start..end).filter(comma).chain([end]) {
            let column = tokens.get(from)?;
            if stop < from + 3 || tokens[from + 1].token.token != Token::Eq {
                return None;
            }
            let value = from + 2..stop;
            let written = self.text.written(&(from..from + 1)).to_owned();
            let added = self.terms(value.clone(), depth(from));
            let column = column.name()?;
            let raised = self.raised(value.clone(), &column);
            found.push(Assignment { column, written, value, added, raised });
            from = stop + 1;
        }
        Some((found, start..end))
    }

    /// The columns that a plain UPDATE sets to a constant.
    pub(crate) fn constants(&self) -> BTreeSet<String> {
        let is_constant = |assignment: &Assignment| match &self.text.tokens[assignment.value.clone()] {
            [one] => {
                matches!(one.token.token, Token::Number(..) | Token::SingleQuotedString(_))
                    || ["true", "false", "null"].iter().any(|word| one.is(word))
            }
            _ => false,
        };
        let (assignments, _) = self.assignments().unwrap_or_default();
        assignments.into_iter().filter(is_constant).map(|assignment| assignment.column).collect()
    }

    fn raised(&self, value: Range<usize>, column: &str) -> Option<Raised> {
        let [of, plus, number] = &self.text.tokens[value] else { return None };
        let Token::Number(number, false) = &number.token.token else { return None };
        let raises = plus.token.token == Token::Plus && number.parse::<u32>().is_ok_and(|number| number > 0);
        match &of.token.token {
            _ if !raises => None,
            Token::Placeholder(name) => self.text.variable(name).map(Raised::Variable),
            _ => (of.name().as_deref() == Some(column)).then_some(Raised::Itself),
        }
    }

    /// For each token the number of parentheses around it.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut depth = 0_usize;
        let mut depths = Vec::new();
        for token in &self.text.tokens[self.range.clone()] {
            if token.token.token == Token::RParen {
                depth = depth.saturating_sub(1);
            }
            depths.push(depth);
            if token.token.token == Token::LParen {
                depth += 1;
            }
        }
        depths
    }

    /// The variables that are a term of a sum; none if the value is more than that.
    fn terms(&self, value: Range<usize>, outside: usize) -> Vec<(Slot, usize)> {
        let tokens = &self.text.tokens;
        let depths = self.depths();
        let outer = |place: &usize| depths[place - self.range.start] == outside;
        let term = |place: usize| {
            matches!(
                tokens[place].token.token,
                Token::Plus
                    | Token::Minus
                    | Token::Mul
                    | Token::Div
                    | Token::Number(..)
                    | Token::Placeholder(_)
                    | Token::LParen
                    | Token::RParen
            )
        };
        if !value.clone().filter(outer).all(term) {
            return Vec::new();
        }
        let starts = |place: usize| place == value.start || tokens[place - 1].token.token == Token::Plus;
        let ends = |place: usize| {
            place + 1 == value.end || matches!(tokens[place + 1].token.token, Token::Plus | Token::Minus)
        };
        let variable = |place: usize| match &tokens[place].token.token {
            Token::Placeholder(name) => Some((self.text.variable(name)?, place)),
            _ => None,
        };
        value
            .clone()
            .filter(|place| outer(place) && starts(*place) && ends(*place))
            .filter_map(variable)
            .collect()
    }

    /// The UPDATE with other assignments. `None` if it would set nothing, or is the same.
    pub(crate) fn with_assignments(
        &self,
        all: &[(Assignment, Assigned)],
        place: &Range<usize>,
    ) -> Option<Rewritten> {
        if all.iter().all(|(_, assigned)| *assigned == Assigned::Kept) {
            return None;
        }
        let named = |range: Range<usize>| self.text.named(&range);
        let (bytes, assigned) = (self.text.bytes(&self.range), self.text.bytes(place));
        let parts = all.iter().filter_map(|(assignment, assigned)| {
            let value = &assignment.value;
            let value = match assigned {
                Assigned::LeftOut => return None,
                Assigned::Kept => named(value.clone()),
                Assigned::Relative(at, after) => {
                    let (before, rest) = (named(value.start..*at), named(at + 1..value.end));
                    let own = format!("{}{after}", assignment.written);
                    [before, own, rest]
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .collect::<Vec<_>>()
                        .join(" ")
                }
            };
            Some(format!("{} = {value}", assignment.written))
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            return None;
        }
        let (before, after) = (bytes.start..assigned.start, assigned.end..bytes.end);
        let parts = parts.join(", ");
        let text = format!("{}{parts}{}", self.text.in_lines(before), self.text.in_lines(after));
        Some(Rewritten { text, sets: format!("SET {parts}") })
    }

    /// How the query could be written, by table. Empty if it isn't a plain query of tables.
    pub(crate) fn fixes(&self) -> BTreeMap<RelationId, Fix> {
        let mut fixes = BTreeMap::new();
        let Ok(Statement::Query(query)) = self.parse() else { return fixes };
        let SetExpr::Select(select) = &*query.body else { return fixes };
        if query.with.is_some() || !self.shows_rows(select) {
            return fixes;
        }
        let [table] = select.from.as_slice() else { return fixes };
        let inner =
            |operator: &JoinOperator| matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
        let alone = table.joins.is_empty();
        if !table.joins.iter().all(|join| inner(&join.join_operator)) {
            return fixes;
        }
        let weaker = if query.locks.is_empty() { None } else { self.weaker_lock().filter(|_| alone) };
        // Of a join the rows of one table may be locked already, to which those of others can be added.
        let locked = match query.locks.as_slice() {
            [lock] if !alone && lock.nonblock.is_none() => lock.of.as_ref().and_then(|name| name.0.last()),
            _ => None,
        };
        let locked = locked.and_then(|part| part.as_ident()).map(ident);
        if (weaker.is_some() || locked.is_some()) == query.locks.is_empty() {
            return fixes;
        }
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            let TableFactor::Table { name, alias, args: None, .. } = factor else { return BTreeMap::new() };
            let last = name.0.last().and_then(|part| part.as_ident());
            let known = alias.as_ref().map(|alias| &alias.name).or(last);
            let (Some(relation), Some(known)) = (self.resolved(name), known) else { return BTreeMap::new() };
            let is_locked = locked.as_ref().is_some_and(|locked| *locked == ident(known));
            let lock = (!is_locked).then(|| if alone { String::new() } else { format!(" OF {known}") });
            let plain = alone
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.fetch.is_none()
                && weaker.is_none();
            let write = if plain { self.written_back(relation) } else { None };
            // The same table twice: it isn't known which of them is meant.
            let root = self.catalog.root(relation);
            if fixes.insert(root, Fix { lock, weaker: weaker.clone(), write }).is_some() {
                return BTreeMap::new();
            }
        }
        fixes
    }

    /// The only lock of a query, at its end, if there are stronger ones that readers don't mind: `FOR SHARE`
    /// or `FOR KEY SHARE`.
    fn weaker_lock(&self) -> Option<String> {
        let [at] = self.outer("for")[..] else { return None };
        let tokens = &self.text.tokens[at..self.range.end];
        let is = |words: &[&str]| tokens.iter().zip(words).all(|(token, word)| token.is(word));
        let waits = !tokens.iter().any(|token| token.is("nowait") || token.is("skip"));
        let clause = at..self.range.end;
        (waits && (is(&["for", "share"]) || is(&["for", "key", "share"]))).then(|| self.text.named(&clause))
    }

    /// The statement with a lock at the end of its only query with LIMIT, so that two transactions that
    /// each take the first of a queue take different ones (PostgreSQL manual, SELECT, "The Locking
    /// Clause"). It isn't known whether the server takes it.
    pub(super) fn first_unlocked(&self) -> Option<LockWithin> {
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let mut limits =
            self.range.clone().filter(|place| tokens[*place].is("limit") || tokens[*place].is("fetch"));
        let (Some(limit), None) = (limits.next(), limits.next()) else { return None };
        // Deeper ones are parts of expressions: `substring(name for 3)`.
        let locks = |place: usize| tokens[place].is("for") && depths[place - start] <= depths[limit - start];
        if self.range.clone().any(locks) {
            return None;
        }
        let end = (limit..self.range.end).find(|place| depths[place - start] < depths[limit - start]);
        let end = end.unwrap_or(self.range.end);
        let (bytes, close) = (self.text.bytes(&self.range), self.text.bytes(&(start..end)).end);
        let [before, after] = [bytes.start..close, close..bytes.end].map(|part| self.text.in_lines(part));
        Some(LockWithin { before, after, skips_locked: true })
    }

    /// The places of a word outside of parentheses.
    fn outer(&self, word: &str) -> Vec<usize> {
        let depths = self.depths();
        let places = self.range.clone().zip(&depths).filter(|(_, depth)| **depth == 0);
        places.map(|(place, _)| place).filter(|place| self.text.tokens[*place].is(word)).collect()
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
        let (from, condition) = (self.outer("from").first().copied(), self.outer("where").last().copied());
        let (from, condition) = (from?, condition?);
        let table = &self.catalog.relations[relation];
        let column = table
            .columns
            .iter()
            .enumerate()
            .find(|(place, column)| !table.key.contains(place) && !column.generated);
        let column = name_in_sql(&column?.1.name);
        let named = |range: Range<usize>| self.text.named(&range);
        Some(format!(
            "UPDATE {} SET {column} = {column} WHERE {} RETURNING {}",
            named(from + 1..condition),
            named(condition + 1..self.range.end),
            named(self.range.start + 1..from),
        ))
    }
}
