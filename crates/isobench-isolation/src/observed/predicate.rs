//! Conditions of searches, evaluated on the recorded columns of a version.
//!
//! SQL's logic has three values (PostgreSQL manual, "Logical Operators"): a comparison with NULL is
//! neither true nor false, and a search finds the rows for which the condition is true.

use std::cmp::Ordering;

use super::value::decimal_order;

/// The number that represents NULL among values.
pub const NULL: i64 = i64::MIN;

/// A condition on the columns of one table. Columns are numbered as in
/// [`super::ObservedTable::columns`], operands as in a search's list of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// Every row matches.
    True,
    /// A column compared with an operand.
    Compare {
        /// The column.
        column: u16,
        /// How they compare.
        comparison: Comparison,
        /// The operand.
        operand: u16,
    },
    /// `column IN (…)`
    In {
        /// The column.
        column: u16,
        /// The operands.
        operands: Vec<u16>,
    },
    /// `column IS NULL`
    IsNull(u16),
    /// Decimals compared by their order; the texts are canonical ([`super::ValueForm::Decimal`]).
    Decimal {
        /// The column.
        column: u16,
        /// How they compare.
        comparison: Comparison,
        /// The operand.
        operand: u16,
    },
    /// `column = ANY (…)`: the operands from this one to the last of all.
    Among {
        /// The column.
        column: u16,
        /// The first operand.
        first: u16,
    },
    /// The row comes before another one in an order. Never NULL.
    Before(Vec<Place>),
    /// `column LIKE pattern`
    Like {
        /// The column, a text.
        column: u16,
        /// The pattern.
        operand: u16,
        /// The character that takes the meaning from the next one.
        escape: Option<char>,
    },
    /// Texts without regard to case, or with a column's text in one case. NULL unless both are in ASCII,
    /// whose letters have the same other case in (nearly) all locales.
    Folded {
        /// The column, a text.
        column: u16,
        /// The case in which the column's text is compared.
        case: Case,
        /// The operand.
        operand: u16,
        /// True if the operand is put into the same case.
        both: bool,
        /// True for `LIKE`, with a backslash to escape; false for `=`.
        pattern: bool,
    },
    /// True of the version in which there is no row: what doesn't find that has found one.
    Absent,
    /// True of versions that don't match, and where there is no row: what doesn't find that has found a
    /// row that matches, which isn't shown. Without a key in the search, at most one row matches at a time.
    Found(Box<Predicate>),
    /// A join has a row of another table for it, which matches. Never false: of rows that aren't known
    /// nothing follows.
    Linked(Box<Linked>),
    /// `NOT …`
    Not(Box<Predicate>),
    /// All of them.
    And(Vec<Predicate>),
    /// At least one of them.
    Or(Vec<Predicate>),
}

/// What a join requires of another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The other table.
    pub table: u16,
    /// Columns that must be equal: of this table, and of the other one.
    pub pairs: Vec<(u16, u16)>,
    /// The condition on the other table's row.
    pub predicate: Predicate,
}

/// What is known of rows that a condition doesn't belong to.
pub trait Elsewhere {
    /// True if a table surely has a row that a row with these columns is joined to. `operands` are
    /// those of the whole condition.
    fn has(&self, linked: &Linked, columns: &[i64], operands: &[i64]) -> bool;
}

/// Nothing is known of other tables.
struct Nowhere;

impl Elsewhere for Nowhere {
    fn has(&self, _: &Linked, _: &[i64], _: &[i64]) -> bool {
        false
    }
}

/// Upper or lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `lower(…)`
    Lower,
    /// `upper(…)`
    Upper,
}

impl Case {
    /// A text in ASCII in this case.
    fn of(self, text: &str) -> Option<String> {
        text.is_ascii().then(|| match self {
            Self::Lower => text.to_ascii_lowercase(),
            Self::Upper => text.to_ascii_uppercase(),
        })
    }
}

/// A column of an order, with its value in the row that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The column.
    pub column: u16,
    /// The operand.
    pub operand: u16,
    /// True for `DESC`.
    pub descending: bool,
    /// True for `NULLS FIRST`.
    pub nulls_first: bool,
    /// True if the values are texts of decimals.
    pub decimal: bool,
}

/// A comparison of a column with an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`; of integers only, as are the following.
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// True if values in this order compare so.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Predicate {
    /// Calls `found` with each condition on another table.
    pub(super) fn each_linked<'p>(&'p self, found: &mut dyn FnMut(&'p Linked)) {
        match self {
            Predicate::Linked(linked) => {
                found(linked);
                linked.predicate.each_linked(found);
            }
            Predicate::Not(inner) | Predicate::Found(inner) => inner.each_linked(found),
            Predicate::And(parts) | Predicate::Or(parts) => {
                for part in parts {
                    part.each_linked(found);
                }
            }
            _ => {}
        }
    }

    /// Calls `found` with each column of a table and an operand that is compared with it, of so many.
    /// `own` is the condition's table.
    pub(super) fn each_compared(&self, own: u16, operands: u16, found: &mut dyn FnMut((u16, u16), u16)) {
        match self {
            Predicate::True | Predicate::Absent | Predicate::IsNull(_) => {}
            Predicate::Linked(linked) => linked.predicate.each_compared(linked.table, operands, found),
            Predicate::Compare { column, operand, .. }
            | Predicate::Folded { column, operand, .. }
            | Predicate::Decimal { column, operand, .. }
            | Predicate::Like { column, operand, .. } => found((own, *column), *operand),
            Predicate::Among { column, first } => {
                for operand in *first..operands {
                    found((own, *column), operand);
                }
            }
            Predicate::Before(places) => {
                for place in places {
                    found((own, place.column), place.operand);
                }
            }
            Predicate::In { column, operands } => {
                for operand in operands {
                    found((own, *column), *operand);
                }
            }
            Predicate::Not(inner) | Predicate::Found(inner) => inner.each_compared(own, operands, found),
            Predicate::And(parts) | Predicate::Or(parts) => {
                for part in parts {
                    part.each_compared(own, operands, found);
                }
            }
        }
    }

    /// The truth of the condition for a row with these values of the recorded columns: `None` if it
    /// is NULL. `text` returns the text with a number.
    pub fn holds<'t>(
        &self,
        columns: &[i64],
        operands: &[i64],
        text: &impl Fn(i64) -> Option<&'t str>,
    ) -> Option<bool> {
        self.holds_with(columns, operands, text, &Nowhere)
    }

    /// The same, with what is known of other tables.
    pub fn holds_with<'t>(
        &self,
        columns: &[i64],
        operands: &[i64],
        text: &impl Fn(i64) -> Option<&'t str>,
        elsewhere: &impl Elsewhere,
    ) -> Option<bool> {
        let column = |number: u16| columns.get(usize::from(number)).copied().filter(|value| *value != NULL);
        let operand = |number: u16| operands.get(usize::from(number)).copied().filter(|value| *value != NULL);
        match self {
            Predicate::True => Some(true),
            // A version that has columns is one of a row.
            Predicate::Absent => Some(false),
            Predicate::Linked(linked) => elsewhere.has(linked, columns, operands).then_some(true),
            Predicate::Folded { column: left, case, operand: right, both, pattern } => {
                let left = case.of(text(column(*left)?)?)?;
                let right = text(operand(*right)?)?;
                let right =
                    if *both { case.of(right)? } else { right.is_ascii().then(|| right.to_owned())? };
                if *pattern { like(&left, &right, Some('\\')) } else { Some(left == right) }
            }
            Predicate::Compare { column: left, comparison, operand: right } => {
                Some(comparison.holds(column(*left)?.cmp(&operand(*right)?)))
            }
            Predicate::In { column: left, operands: list } => {
                let value = column(*left)?;
                any(list.iter().map(|number| operand(*number).map(|operand| operand == value)))
            }
            Predicate::IsNull(number) => Some(column(*number).is_none()),
            Predicate::Decimal { column: left, comparison, operand: right } => {
                let (left, right) = (text(column(*left)?)?, text(operand(*right)?)?);
                Some(comparison.holds(decimal_order(left, right)?))
            }
            Predicate::Among { column: left, first } => {
                let value = column(*left)?;
                let list = operands.get(usize::from(*first)..).unwrap_or_default();
                any(list.iter().map(|operand| (*operand != NULL).then_some(*operand == value)))
            }
            Predicate::Before(places) => {
                for place in places {
                    match place.order(column(place.column), operand(place.operand), text) {
                        Some(Ordering::Equal) => {}
                        order => return Some(order == Some(Ordering::Less)),
                    }
                }
                Some(false)
            }
            Predicate::Like { column: left, operand: right, escape } => {
                like(text(column(*left)?)?, text(operand(*right)?)?, *escape)
            }
            Predicate::Not(inner) | Predicate::Found(inner) => {
                inner.holds_with(columns, operands, text, elsewhere).map(|truth| !truth)
            }
            Predicate::And(parts) => {
                let parts = parts.iter().map(|part| part.holds_with(columns, operands, text, elsewhere));
                any(parts.map(|truth| truth.map(|truth| !truth))).map(|truth| !truth)
            }
            Predicate::Or(parts) => {
                any(parts.iter().map(|part| part.holds_with(columns, operands, text, elsewhere)))
            }
        }
    }
}

impl Place {
    /// The order of a value before or after another one; `None` if it isn't known.
    fn order<'t>(
        self,
        value: Option<i64>,
        other: Option<i64>,
        text: &impl Fn(i64) -> Option<&'t str>,
    ) -> Option<Ordering> {
        let first = |value: Option<i64>| value.is_none() == self.nulls_first;
        let order = match (value, other) {
            (None, None) => return Some(Ordering::Equal),
            (Some(value), Some(other)) if self.decimal => decimal_order(text(value)?, text(other)?)?,
            (Some(value), Some(other)) => value.cmp(&other),
            // NULL is first or last, whatever the direction.
            _ => return Some(if first(value) { Ordering::Less } else { Ordering::Greater }),
        };
        Some(if self.descending { order.reverse() } else { order })
    }
}

/// `text LIKE pattern` in a deterministic collation. `None` if the pattern is an error.
fn like(text: &str, pattern: &str, escape: Option<char>) -> Option<bool> {
    let mut parts: Vec<Part> = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        parts.push(match char {
            char if Some(char) == escape => Part::Char(chars.next()?),
            '%' => Part::Any,
            '_' => Part::One,
            char => Part::Char(char),
        });
    }
    let text: Vec<char> = text.chars().collect();
    // The places in the text that the pattern so far can end at.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        for place in 0..=text.len() {
            next[place] = match part {
                Part::Any => ends[place] || place > 0 && next[place - 1],
                Part::One => place > 0 && ends[place - 1],
                Part::Char(char) => place > 0 && ends[place - 1] && text[place - 1] == char,
            };
        }
        ends = next;
    }
    ends.last().copied()
}

/// A part of a pattern of LIKE.
#[derive(Clone, Copy)]
enum Part {
    Any,
    One,
    Char(char),
}

/// SQL's OR: true if one is true, otherwise unknown if one is unknown.
fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 3] = ["open", "opening", "closed"];

    fn holds(predicate: &Predicate, columns: &[i64], operands: &[i64]) -> Option<bool> {
        let text = |number: i64| usize::try_from(number).ok().and_then(|number| TEXTS.get(number)).copied();
        predicate.holds(columns, operands, &text)
    }

    fn compare(comparison: Comparison) -> Predicate {
        Predicate::Compare { column: 0, comparison, operand: 0 }
    }

    #[test]
    fn comparisons_with_null_are_unknown() {
        assert_eq!(holds(&compare(Comparison::Less), &[1], &[2]), Some(true));
        assert_eq!(holds(&compare(Comparison::GreaterOrEqual), &[1], &[2]), Some(false));
        assert_eq!(holds(&compare(Comparison::Equal), &[NULL], &[NULL]), None);
        assert_eq!(holds(&Predicate::IsNull(0), &[NULL], &[]), Some(true));
        assert_eq!(holds(&Predicate::Not(Box::new(compare(Comparison::Equal))), &[NULL], &[1]), None);
    }

    #[test]
    fn unknown_parts_decide_nothing_by_themselves() {
        let unknown = Predicate::Compare { column: 1, comparison: Comparison::Equal, operand: 0 };
        let known = compare(Comparison::Equal);
        let both = [known, unknown];
        assert_eq!(holds(&Predicate::And(both.to_vec()), &[1, NULL], &[1]), None);
        assert_eq!(holds(&Predicate::And(both.to_vec()), &[2, NULL], &[1]), Some(false));
        assert_eq!(holds(&Predicate::Or(both.to_vec()), &[1, NULL], &[1]), Some(true));
        assert_eq!(holds(&Predicate::Or(both.to_vec()), &[2, NULL], &[1]), None);
        let list = Predicate::In { column: 0, operands: vec![0, 1] };
        assert_eq!(holds(&list, &[2], &[1, NULL]), None);
        assert_eq!(holds(&list, &[1], &[1, NULL]), Some(true));
    }

    #[test]
    fn patterns_are_those_of_like() {
        // By PostgreSQL 15.
        for (text, pattern, expected) in [
            ("opening", "open%", Some(true)),
            ("closed", "open%", Some(false)),
            ("opening", "%nin_", Some(true)),
            ("open", "open", Some(true)),
            ("open", "o%p%n%", Some(true)),
            ("", "%", Some(true)),
            ("", "_", Some(false)),
            ("ä", "_", Some(true)),
            ("50%", "50\\%", Some(true)),
            ("500", "50\\%", Some(false)),
            ("a", "a\\", None),
        ] {
            assert_eq!(like(text, pattern, Some('\\')), expected, "{text} {pattern}");
        }
        assert_eq!(like("a\\b", "a\\b", None), Some(true));
    }

    #[test]
    fn the_order_has_null_where_it_is_put() {
        let before = |descending: bool, nulls_first: bool, value: i64, last: i64| {
            let place = Place { column: 0, operand: 0, descending, nulls_first, decimal: false };
            holds(&Predicate::Before(vec![place]), &[value], &[last])
        };
        for (descending, nulls_first, value, last, expected) in [
            (false, false, 1, 2, true),
            (false, false, 2, 2, false),
            (true, true, 1, 2, false),
            (true, true, 3, 2, true),
            (true, true, NULL, 2, true),
            (true, true, 2, NULL, false),
            (false, false, NULL, 2, false),
            (false, false, 2, NULL, true),
            (false, false, NULL, NULL, false),
        ] {
            let found = before(descending, nulls_first, value, last);
            assert_eq!(found, Some(expected), "{descending} {nulls_first} {value} {last}");
        }
        let next = |column: u16| Place {
            column,
            operand: column,
            descending: false,
            nulls_first: false,
            decimal: false,
        };
        let both = Predicate::Before(vec![next(0), next(1)]);
        assert_eq!(holds(&both, &[1, 1], &[1, 2]), Some(true));
        assert_eq!(holds(&both, &[2, 1], &[1, 2]), Some(false));
    }

    #[test]
    fn case_is_that_of_ascii() {
        let texts = ["Open", "oPEN", "%pe%", "ÖPEN"];
        let holds = |case: Case, both: bool, pattern: bool, column: i64, operand: i64| {
            let text =
                |number: i64| usize::try_from(number).ok().and_then(|number| texts.get(number)).copied();
            let folded = Predicate::Folded { column: 0, case, operand: 0, both, pattern };
            folded.holds(&[column], &[operand], &text)
        };
        assert_eq!(holds(Case::Upper, true, false, 0, 1), Some(true));
        assert_eq!(holds(Case::Lower, false, false, 0, 1), Some(false));
        assert_eq!(holds(Case::Lower, true, true, 1, 2), Some(true));
        assert_eq!(holds(Case::Lower, true, false, 3, 1), None);
        assert_eq!(holds(Case::Lower, false, false, 0, 3), None);
    }

    #[test]
    fn the_rest_of_the_operands_is_a_list() {
        let among = Predicate::Among { column: 0, first: 1 };
        assert_eq!(holds(&among, &[5], &[5]), Some(false));
        assert_eq!(holds(&among, &[5], &[1, 4, 5]), Some(true));
        assert_eq!(holds(&among, &[5], &[5, 4, NULL]), None);
    }
}
