//! Conditions of simulated statements, evaluated independently of the checker.

use isobench_isolation::observed::{Comparison, NULL, Predicate};

/// The values of a row: its key and two columns that may be NULL.
pub type Columns = [i64; 3];

/// A condition on a row's columns, with its operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    All,
    Compare(usize, Comparison, i64),
    In(usize, Vec<i64>),
    Between(usize, i64, i64),
    IsNull(usize),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

/// The condition of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The key that a row must have, if the statement looks up a key.
    pub key: Option<i64>,
    /// What else a row must fulfil.
    pub test: Test,
}

impl Condition {
    pub fn key(key: i64) -> Condition {
        Condition { key: Some(key), test: Test::All }
    }

    pub fn matches(&self, columns: Columns) -> bool {
        self.key.is_none_or(|key| key == columns[0]) && self.test.truth(columns) == Some(true)
    }
}

impl Test {
    pub fn equal(column: usize, value: i64) -> Test {
        Test::Compare(column, Comparison::Equal, value)
    }

    /// The truth in SQL's logic; `None` is NULL.
    fn truth(&self, columns: Columns) -> Option<bool> {
        let compare = |column: usize, comparison: Comparison, right: i64| {
            let left = columns[column];
            (left != NULL && right != NULL).then_some(match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                Comparison::Less => left < right,
                Comparison::LessOrEqual => left <= right,
                Comparison::Greater => left > right,
                Comparison::GreaterOrEqual => left >= right,
            })
        };
        let and = |one: Option<bool>, other: Option<bool>| match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        let not = |truth: Option<bool>| truth.map(|truth| !truth);
        match self {
            Test::All => Some(true),
            Test::Compare(column, comparison, operand) => compare(*column, *comparison, *operand),
            Test::In(column, operands) => {
                let equal = |operand: &i64| compare(*column, Comparison::Equal, *operand);
                let known = !operands.iter().any(|operand| equal(operand).is_none());
                let found = operands.iter().any(|operand| equal(operand) == Some(true));
                (known || found).then_some(found)
            }
            Test::Between(column, low, high) => and(
                compare(*column, Comparison::GreaterOrEqual, *low),
                compare(*column, Comparison::LessOrEqual, *high),
            ),
            Test::IsNull(column) => Some(columns[*column] == NULL),
            Test::Not(test) => not(test.truth(columns)),
            Test::And(one, other) => and(one.truth(columns), other.truth(columns)),
            Test::Or(one, other) => not(and(not(one.truth(columns)), not(other.truth(columns)))),
        }
    }

    /// The condition as the log has it. Its operands are appended to `operands`.
    pub fn predicate(&self, operands: &mut Vec<i64>) -> Predicate {
        let mut operand = |value: i64| {
            operands.push(value);
            number(operands.len() - 1)
        };
        match self {
            Test::All => Predicate::True,
            Test::Compare(column, comparison, value) => Predicate::Compare {
                column: number(*column),
                comparison: *comparison,
                operand: operand(*value),
            },
            Test::In(column, values) => Predicate::In {
                column: number(*column),
                operands: values.iter().map(|value| operand(*value)).collect(),
            },
            Test::Between(column, low, high) => {
                let bound =
                    |comparison, operand| Predicate::Compare { column: number(*column), comparison, operand };
                let low = bound(Comparison::GreaterOrEqual, operand(*low));
                Predicate::And(vec![low, bound(Comparison::LessOrEqual, operand(*high))])
            }
            Test::IsNull(column) => Predicate::IsNull(number(*column)),
            Test::Not(test) => Predicate::Not(Box::new(test.predicate(operands))),
            Test::And(one, other) => Predicate::And(vec![one.predicate(operands), other.predicate(operands)]),
            Test::Or(one, other) => Predicate::Or(vec![one.predicate(operands), other.predicate(operands)]),
        }
    }
}

fn number(index: usize) -> u16 {
    u16::try_from(index).expect("a small number")
}
