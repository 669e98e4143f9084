//! Ranges that a condition looks for: `room = :r AND span && …`, `room = :r AND begins < :e AND ends > :b`.
//!
//! If a script looks for rows that overlap before it inserts one, an exclusion constraint may be missing (PostgreSQL
//! manual, "Exclude Constraints"). They are found by the words of the statement; the server says whether it takes the
//! constraint.

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_sql::{Column, ColumnType, Placed, Relation, Token, name_in_sql};

use super::{Statement, partial};

/// Rows that must not overlap, if some of their columns are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overlap {
    /// The table, by schema and name.
    pub table: String,
    /// The columns that are equal, as SQL; true of integers.
    pub equal: BTreeSet<(String, bool)>,
    /// The range, as SQL.
    pub range: String,
    /// Which rows must not overlap, as SQL, if not all: `NOT cancelled`.
    pub condition: Option<String>,
}

/// A part of a condition.
enum Part {
    /// A column is equal to something.
    Equal(String),
    /// A column overlaps with something.
    Overlaps(String),
    /// A column is below something; true if it may be equal to it.
    Below(String, bool),
    /// A column is above something; true if it may be equal to it.
    Above(String, bool),
    /// A condition on a row of its own, as SQL.
    Own(String),
}

impl Overlap {
    /// The constraint: with the operators of the extension `btree_gist` for columns that have to be equal, or with ranges
    /// of one integer in their place; `None` if that can't be.
    pub fn constraint(&self, with_extension: bool) -> Option<String> {
        let equal = self.equal.iter().map(|(column, is_integer)| match (with_extension, is_integer) {
            (true, _) => Some(format!("{column} WITH =")),
            (false, true) => Some(format!("int8range({column}, {column}, '[]') WITH &&")),
            (false, false) => None,
        });
        let mut all: Vec<String> = equal.collect::<Option<_>>()?;
        all.push(format!("{} WITH &&", self.range));
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE ({condition})"));
        Some(format!("EXCLUDE USING gist ({}){}", all.join(", "), condition.unwrap_or_default()))
    }
}

impl Statement<'_> {
    /// Those of the statement's queries of one table.
    pub(crate) fn overlaps(&self) -> BTreeSet<Overlap> {
        let tokens = &self.text.tokens;
        let froms = self.range.clone().filter(|at| tokens[*at].is("from"));
        froms.filter_map(|from| self.overlap(from)).collect()
    }

    fn overlap(&self, from: usize) -> Option<Overlap> {
        let (relation, known, parts) = self.parts_of_condition(from)?;
        let find = |name: &str| relation.columns.iter().find(|column| column.name == name);
        let (mut equal, mut range, mut conditions) = (BTreeSet::new(), None, Vec::new());
        let (mut below, mut above) = (None, None);
        for part in parts {
            match self.part_of_overlap(part, &known)? {
                Part::Own(condition) => conditions.push(condition),
                Part::Equal(column) => {
                    let is_integer = find(&column)?.kind == ColumnType::Integer;
                    equal.insert((name_in_sql(&column), is_integer));
                }
                Part::Overlaps(column) if range.is_none() && find(&column).is_some() => {
                    range = Some(name_in_sql(&column));
                }
                Part::Below(column, or_equal) if below.is_none() => below = Some((find(&column)?, or_equal)),
                Part::Above(column, or_equal) if above.is_none() => above = Some((find(&column)?, or_equal)),
                _ => return None,
            }
        }
        let range = match (range, below, above) {
            (Some(range), None, None) => range,
            (None, Some((begins, closed)), Some((ends, also_closed))) if closed == also_closed => {
                range_of(relation, begins, ends, closed)?
            }
            _ => return None,
        };
        let condition = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        Some(Overlap { table: relation.qualified(), equal, range, condition })
    }

    fn part_of_overlap(&self, range: Range<usize>, known: &str) -> Option<Part> {
        if let Some(partial::Part::Own(condition, _)) = self.part(range.clone(), known) {
            return Some(Part::Own(condition));
        }
        let tokens = &self.text.tokens[range];
        let column = |tokens: &[Placed]| match tokens {
            [column] => column.name(),
            [name, point, column] if point.token.token == Token::Period && name.name()? == known => {
                column.name()
            }
            _ => None,
        };
        let operator = |token: &Token| {
            matches!(token, Token::Eq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq | Token::Overlap)
        };
        let at = tokens.iter().position(|placed| operator(&placed.token.token))?;
        let (left, right) = (column(&tokens[..at]), column(&tokens[at + 1..]));
        let (column, is_left) = match (left, right) {
            (Some(column), None) => (column, true),
            (None, Some(column)) => (column, false),
            _ => return None,
        };
        Some(match (&tokens[at].token.token, is_left) {
            (Token::Eq, _) => Part::Equal(column),
            (Token::Overlap, _) => Part::Overlaps(column),
            (Token::Lt, true) | (Token::Gt, false) => Part::Below(column, false),
            (Token::LtEq, true) | (Token::GtEq, false) => Part::Below(column, true),
            (Token::Gt, true) | (Token::Lt, false) => Part::Above(column, false),
            (Token::GtEq, true) | (Token::LtEq, false) => Part::Above(column, true),
            _ => return None,
        })
    }
}

/// The range between two columns of a type; `closed` if it has both ends.
fn range_of(relation: &Relation, begins: &Column, ends: &Column, closed: bool) -> Option<String> {
    let function = match (begins.kind, ends.kind) {
        (ColumnType::Integer, ColumnType::Integer) => "int8range",
        (ColumnType::Date, ColumnType::Date) => "daterange",
        (ColumnType::Timestamp, ColumnType::Timestamp) => "tsrange",
        (ColumnType::Instant, ColumnType::Instant) => "tstzrange",
        (ColumnType::Decimal, ColumnType::Decimal) => "numrange",
        _ => return None,
    };
    let is_key =
        |column: &Column| relation.key.iter().any(|place| relation.columns[*place].name == column.name);
    if begins.name == ends.name || is_key(begins) || is_key(ends) {
        return None;
    }
    let bounds = if closed { ", '[]'" } else { "" };
    Some(format!("{function}({}, {}{bounds})", name_in_sql(&begins.name), name_in_sql(&ends.name)))
}
