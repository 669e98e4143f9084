//! Numbers with which a transaction comes to rows that another one finds by itself: a delivery takes
//! the oldest order, and only a customer with that order sees the half of it.
//!
//! What a statement compares columns with is known once its script has run alone. If another script
//! compares the same columns with numbers that it draws, these numbers can be chosen. Columns are
//! matched by their names alone: a wrong match costs a trial, and shows nothing.

use std::collections::BTreeMap;

use super::program::{Choice, Targets, Transaction};

/// The most combinations of transactions that get targets, of one combination of scripts.
const MOST: usize = 6;

/// The columns that a statement compares with values, by their names.
pub type Comparison = BTreeMap<String, Compared>;

/// A value that a statement compares a column with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared {
    /// The value as it was sent.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// This command drew it.
    Drawn(usize),
    /// The server returned it.
    Found,
    /// It was computed, or is a constant.
    Computed,
}

/// What the statements of a script compared in a run alone, with the choice of that run.
pub type ComparedAlone = (Choice, Vec<Comparison>);

/// The transactions of a combination of scripts in which the draws of one are chosen by what another one
/// compared, those by most values from the server first; `runs` has the runs of each script alone.
pub fn combinations_with_targets(
    combination: &[usize],
    runs: &[Vec<ComparedAlone>],
) -> Vec<Vec<Transaction>> {
    let mut combinations: Vec<(usize, Vec<Transaction>)> = Vec::new();
    let of = |program: usize| runs.get(program).map_or(&[][..], Vec::as_slice);
    for (at, program) in combination.iter().enumerate() {
        for (other_at, other) in combination.iter().enumerate().filter(|(other, _)| *other != at) {
            for (choice, own) in of(*program) {
                for (others_choice, others) in of(*other) {
                    for (found, targets) in all_targets(own, others) {
                        let mut transactions: Vec<Transaction> =
                            combination.iter().copied().map(Transaction::of).collect();
                        transactions[other_at].choice = others_choice.clone();
                        transactions[at] = Transaction { program: *program, choice: choice.clone(), targets };
                        if !combinations.iter().any(|(_, known)| known[at] == transactions[at]) {
                            combinations.push((found, transactions));
                        }
                    }
                }
            }
        }
    }
    combinations.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
    combinations.into_iter().take(MOST).map(|(_, transactions)| transactions).collect()
}

/// The numbers with which a statement of a script would compare as one of another script does, each with
/// the number of values that the latter has from the server.
fn all_targets(own: &[Comparison], others: &[Comparison]) -> Vec<(usize, Targets)> {
    let pairs = own.iter().flat_map(|own| others.iter().map(move |others| (own, others)));
    pairs.filter_map(|(own, others)| targets_of(own, others)).collect()
}

/// The numbers with which one statement would compare the same columns with the same values as another
/// one, if some of those weren't drawn.
fn targets_of(own: &Comparison, others: &Comparison) -> Option<(usize, Targets)> {
    let (mut targets, mut found, mut differs) = (Targets::new(), 0, false);
    for (column, own) in own {
        let other = others.get(column)?;
        match own.origin {
            Origin::Drawn(command) => drop(targets.insert(command, other.value.parse().ok()?)),
            _ if own.value == other.value => {}
            _ => return None,
        }
        differs |= !matches!(other.origin, Origin::Drawn(_)) && other.value != own.value;
        found += usize::from(other.origin == Origin::Found);
    }
    differs.then_some((found, targets))
}

#[cfg(test)]
mod tests {
    use super::Origin::{Computed, Drawn, Found};
    use super::*;

    fn comparison(columns: &[(&str, i64, Origin)]) -> Comparison {
        let of = |(column, value, origin): &(&str, i64, Origin)| {
            ((*column).to_owned(), Compared { value: value.to_string(), origin: *origin })
        };
        columns.iter().map(of).collect()
    }

    #[test]
    fn values_that_the_server_returned_are_targets_first() {
        let status = comparison(&[("d_id", 1, Drawn(3)), ("c_id", 260, Drawn(4))]);
        let last = comparison(&[("d_id", 1, Drawn(3))]);
        let delivery = comparison(&[("d_id", 2, Computed), ("c_id", 134, Found), ("w_id", 1, Computed)]);
        let wanted = Targets::from([(3, 2), (4, 134)]);
        assert_eq!(targets_of(&status, &delivery), Some((1, wanted.clone())));
        let runs = [vec![(Choice::new(), vec![last, status])], vec![(Choice::new(), vec![delivery])]];
        let transaction = |targets: Targets| Transaction { program: 0, choice: Choice::new(), targets };
        let expected =
            [wanted, Targets::from([(3, 2)])].map(|targets| vec![transaction(targets), Transaction::of(1)]);
        assert_eq!(combinations_with_targets(&[0, 1], &runs), expected);
    }

    #[test]
    fn drawn_and_equal_values_are_no_targets() {
        let drawn = comparison(&[("id", 1, Drawn(0))]);
        assert_eq!(targets_of(&drawn, &comparison(&[("id", 5, Drawn(0))])), None, "the other one draws it");
        assert_eq!(targets_of(&drawn, &comparison(&[("id", 1, Found)])), None, "it is the same already");
        assert_eq!(targets_of(&drawn, &comparison(&[("v", 5, Found)])), None, "another column");
        let fixed = comparison(&[("id", 1, Drawn(0)), ("kind", 2, Computed)]);
        let other = comparison(&[("id", 5, Found), ("kind", 3, Computed)]);
        assert_eq!(targets_of(&fixed, &other), None, "the rest differs");
    }
}
