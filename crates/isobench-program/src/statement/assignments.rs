//! The assignments of an UPDATE, and the same statement with others: one that depends on fewer values that were read
//! before.

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_script::Slot;
use isobench_sql::{ColumnType, Token};

use super::Statement;

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

impl Statement<'_> {
    /// The assignments of a plain UPDATE, in order, and the tokens of all of them. `None` if they aren't
    /// a column and a value each.
    pub(crate) fn assignments(&self) -> Option<(Vec<Assignment>, Range<usize>)> {
        let tokens = &self.text.tokens;
        if !tokens[self.range.start].is("update") {
            return None;
        }
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
            found.push(Assignment { column, written, value, added });
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

    /// The columns of numbers that an UPDATE sets.
    pub(crate) fn numbers_set(&self) -> BTreeSet<String> {
        let Ok(bound) = &self.bound else { return BTreeSet::new() };
        let mut found = BTreeSet::new();
        for relation in bound.relations.iter().filter(|relation| relation.updates) {
            let Some(id) = self.catalog.relation_of(relation) else { continue };
            let columns = &self.catalog.relations[id].columns;
            let is_number = |name: &String| {
                let mut own = columns.iter().filter(|column| column.name == *name);
                own.any(|column| matches!(column.kind, ColumnType::Integer | ColumnType::Decimal))
            };
            let set = relation.updated.iter().filter_map(|number| self.name_of(relation, *number));
            found.extend(set.filter(is_number));
        }
        found
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
}
