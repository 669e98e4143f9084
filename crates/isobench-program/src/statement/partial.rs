//! Rows of which a condition picks some and a column tells them apart: `WHERE lock_key = … AND doing`.
//!
//! If a statement looks for such rows before it adds one, a unique index on the column of the rows that the condition
//! picks may be missing (PostgreSQL manual, "Partial Indexes"). They are found by the words of the statement; the server
//! says whether it takes the index.

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_sql::{Placed, Relation, Token, name_in_sql};

use super::Statement;

/// Columns that tell rows apart, among those that a condition picks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartialKey {
    /// The table, by schema and name.
    pub table: String,
    /// The columns.
    pub columns: BTreeSet<String>,
    /// The condition, as SQL.
    pub condition: String,
}

/// A part of a condition.
pub(super) enum Part {
    /// A column is equal to something else than a constant.
    Equal(String),
    /// A condition on a row of its own, as SQL.
    Own(String),
}

impl Statement<'_> {
    /// Those of the statement's queries of one table.
    pub(crate) fn partial_keys(&self) -> BTreeSet<PartialKey> {
        let tokens = &self.text.tokens;
        let froms = self.range.clone().filter(|at| tokens[*at].is("from"));
        froms.filter_map(|from| self.partial_key(from)).collect()
    }

    fn partial_key(&self, from: usize) -> Option<PartialKey> {
        let (relation, known, parts) = self.parts_of_condition(from)?;
        let (mut columns, mut conditions) = (BTreeSet::new(), BTreeSet::new());
        for part in parts {
            match self.part(part, &known) {
                Some(Part::Equal(column)) => drop(columns.insert(column)),
                Some(Part::Own(condition)) => drop(conditions.insert(condition)),
                None => {}
            }
        }
        let has = |name: &String| relation.columns.iter().any(|column| column.name == *name);
        (!columns.is_empty() && columns.iter().all(has) && !conditions.is_empty()).then(|| PartialKey {
            table: relation.qualified(),
            columns,
            condition: conditions.into_iter().collect::<Vec<_>>().join(" AND "),
        })
    }

    /// The only table of the FROM at a token, the name by which it is known, and the parts of its condition, which AND
    /// connects.
    pub(super) fn parts_of_condition(&self, from: usize) -> Option<(&Relation, String, Vec<Range<usize>>)> {
        const ENDS: [&str; 10] =
            ["group", "order", "limit", "for", "union", "returning", "having", "fetch", "offset", "window"];
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let depth = depths[from - start];
        let end = |at: &usize| {
            let own = depths[at - start] == depth && ENDS.iter().any(|word| tokens[*at].is(word));
            depths[at - start] < depth || own
        };
        let end = (from..self.range.end).find(end).unwrap_or(self.range.end);
        let (known, place) = self.only_table(from + 1..end)?;
        let relation = self.catalog.resolve(None, &tokens[from + 1].name()?)?;
        let relation = &self.catalog.relations[self.catalog.root(relation)];
        let own = |at: &usize| depths[at - start] == depth;
        let or = |at: usize| own(&at) && (tokens[at].is("or") || tokens[at].is("between"));
        if (place..end).any(or) {
            return None;
        }
        let (mut parts, mut first) = (Vec::new(), place + 1);
        for stop in (place + 1..end).filter(|at| own(at) && tokens[*at].is("and")).chain([end]) {
            parts.push(first..stop);
            first = stop + 1;
        }
        Some((relation, known, parts))
    }

    /// What a part of a condition says of the table that is known by this name.
    pub(super) fn part(&self, range: Range<usize>, known: &str) -> Option<Part> {
        let tokens = &self.text.tokens[range];
        let (is_negated, tokens) = match tokens {
            [first, rest @ ..] if first.is("not") => (true, rest),
            all => (false, all),
        };
        // `column` or `name.column`.
        let column = |tokens: &[Placed]| match tokens {
            [column] => column.name(),
            [name, point, column] if point.token.token == Token::Period && name.name()? == known => {
                column.name()
            }
            _ => None,
        };
        let literal = |tokens: &[Placed]| match tokens {
            [one] => match &one.token.token {
                Token::Number(number, _) => Some(number.clone()),
                Token::SingleQuotedString(text) if !self.text.is_partly_variable(one.token.span.start) => {
                    Some(format!("'{}'", text.replace('\'', "''")))
                }
                _ => ["true", "false"].iter().find(|word| one.is(word)).map(|word| (*word).to_owned()),
            },
            _ => None,
        };
        if let Some(at) = tokens.iter().position(|token| token.token.token == Token::Eq) {
            let (left, right) = (&tokens[..at], &tokens[at + 1..]);
            let (column, other) = match (column(left), column(right)) {
                (Some(column), _) if literal(left).is_none() => (column, right),
                (_, Some(column)) if literal(right).is_none() => (column, left),
                _ => return None,
            };
            return match literal(other) {
                _ if is_negated => None,
                Some(value) => Some(Part::Own(format!("{} = {value}", name_in_sql(&column)))),
                None => Some(Part::Equal(column)),
            };
        }
        if let Some(at) = tokens.iter().position(|token| token.is("is")).filter(|_| !is_negated) {
            let name = name_in_sql(&column(&tokens[..at])?);
            return match &tokens[at + 1..] {
                [null] if null.is("null") => Some(Part::Own(format!("{name} IS NULL"))),
                [not, null] if not.is("not") && null.is("null") => {
                    Some(Part::Own(format!("{name} IS NOT NULL")))
                }
                _ => None,
            };
        }
        let not = if is_negated { "NOT " } else { "" };
        Some(Part::Own(format!("{not}{}", name_in_sql(&column(tokens)?))))
    }
}
