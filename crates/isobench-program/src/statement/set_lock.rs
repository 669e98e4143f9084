//! Locks of the rows that a query counts or sums up, as a statement before it.
//!
//! They are made of the words of the query: of its condition those parts that require a column to be equal to
//! something. The rows that have these values are the same or more. The server's reading of the changed script says what
//! follows.

use isobench_robustness::Strength;
use isobench_sql::{Placed, Token};

use super::Statement;
use super::partial::Part;

impl Statement<'_> {
    /// For each query of one table in the statement, statements that lock its rows in the order of the key, each with
    /// the table's name: by all equalities, and without those with constants, which rows may lose or get. None if it
    /// takes the first rows of an order: others then wait for a row that they don't want.
    pub(crate) fn set_locks(&self) -> Vec<(String, String)> {
        let tokens = &self.text.tokens;
        if self.range.clone().any(|at| tokens[at].is("limit") || tokens[at].is("fetch")) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for from in self.range.clone().filter(|at| tokens[*at].is("from")) {
            for lock in self.set_locks_of(from).unwrap_or_default() {
                if !found.contains(&lock) {
                    found.push(lock);
                }
            }
        }
        found
    }

    fn set_locks_of(&self, from: usize) -> Option<Vec<(String, String)>> {
        let (relation, known, parts) = self.parts_of_condition(from)?;
        let place = parts.first()?.start.checked_sub(1)?;
        let (mut variable, mut all) = (Vec::new(), Vec::new());
        let is_equal = |token: &Placed| token.token.token == Token::Eq;
        for part in parts {
            let text = self.text.named(&part);
            match self.part(part.clone(), &known) {
                Some(Part::Equal(_)) => {
                    variable.push(text.clone());
                    all.push(text);
                }
                Some(Part::Own(_, true)) if self.text.tokens[part].iter().any(is_equal) => all.push(text),
                _ => {}
            }
        }
        let table = self.text.named(&(from + 1..place));
        let order = self.order_of(from + 1, &known);
        let lock = |parts: &Vec<String>| {
            let condition = parts.join(" AND ");
            let text =
                format!("SELECT 1 FROM {table} WHERE {condition}{order} {}", Strength::NoKeyUpdate.clause());
            (relation.qualified(), text)
        };
        Some([&all, &variable].into_iter().filter(|parts| !parts.is_empty()).map(lock).collect())
    }
}
