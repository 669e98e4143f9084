//! Conditions of searches, evaluated on the recorded columns of a version.
//!
//! SQL's logic has three values (PostgreSQL manual, "Logical Operators"): a comparison with NULL is
//! neither true nor false, and a search finds the rows for which the condition is true.

use std::cmp::Ordering;

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
    /// `column LIKE 'prefix%'`
    Prefix {
        /// The column, a text.
        column: u16,
        /// The operand, a text without the final `%`.
        operand: u16,
    },
    /// `NOT …`
    Not(Box<Predicate>),
    /// All of them.
    And(Vec<Predicate>),
    /// At least one of them.
    Or(Vec<Predicate>),
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
    fn holds(self, order: Ordering) -> bool {
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
    /// Calls `found` with each column and an operand that is compared with it.
    pub(super) fn each_compared(&self, found: &mut impl FnMut(u16, u16)) {
        match self {
            Predicate::True | Predicate::IsNull(_) => {}
            Predicate::Compare { column, operand, .. } | Predicate::Prefix { column, operand } => {
                found(*column, *operand);
            }
            Predicate::In { column, operands } => {
                for operand in operands {
                    found(*column, *operand);
                }
            }
            Predicate::Not(inner) => inner.each_compared(found),
            Predicate::And(parts) | Predicate::Or(parts) => {
                for part in parts {
                    part.each_compared(found);
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
        let column = |number: u16| columns.get(usize::from(number)).copied().filter(|value| *value != NULL);
        let operand = |number: u16| operands.get(usize::from(number)).copied().filter(|value| *value != NULL);
        match self {
            Predicate::True => Some(true),
            Predicate::Compare { column: left, comparison, operand: right } => {
                Some(comparison.holds(column(*left)?.cmp(&operand(*right)?)))
            }
            Predicate::In { column: left, operands: list } => {
                let value = column(*left)?;
                any(list.iter().map(|number| operand(*number).map(|operand| operand == value)))
            }
            Predicate::IsNull(number) => Some(column(*number).is_none()),
            Predicate::Prefix { column: left, operand: right } => {
                Some(text(column(*left)?)?.starts_with(text(operand(*right)?)?))
            }
            Predicate::Not(inner) => inner.holds(columns, operands, text).map(|truth| !truth),
            Predicate::And(parts) => {
                let parts = parts.iter().map(|part| part.holds(columns, operands, text));
                any(parts.map(|truth| truth.map(|truth| !truth))).map(|truth| !truth)
            }
            Predicate::Or(parts) => any(parts.iter().map(|part| part.holds(columns, operands, text))),
        }
    }
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
    fn prefixes_are_compared_as_texts() {
        let prefix = Predicate::Prefix { column: 0, operand: 0 };
        assert_eq!(holds(&prefix, &[1], &[0]), Some(true));
        assert_eq!(holds(&prefix, &[2], &[0]), Some(false));
    }
}
