//! Invariants of the TPC-B-like tables, which hold after any number of transactions at every level.
//!
//! The built-in scripts add the same delta to a balance of each kind and to the history, in one
//! transaction, so sums and counts reveal lost, doubled and partial transactions. These scripts
//! can't lose updates at read committed, because they add deltas in SQL. Sums that agree therefore
//! say nothing about a script that reads first and writes later.

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::schema::OwnNames;

/// The writes of one transaction to the TPC-B-like tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// The delta to an account, a teller, a branch and the history: `tpcb-like`.
    AllTables,
    /// The delta to an account and the history: `simple-update`.
    AccountAndHistory,
    /// Nothing: `select-only`.
    Nothing,
}

/// The built-in scripts and their writes.
const BUILTIN: [(&str, Writes); 3] = [
    ("tpcb-like", Writes::AllTables),
    ("simple-update", Writes::AccountAndHistory),
    ("select-only", Writes::Nothing),
];

impl Writes {
    /// The writes of a built-in script with this full name; `None` for any other script.
    pub fn of_builtin(name: &str) -> Option<Self> {
        BUILTIN.iter().find(|row| row.0 == name).map(|row| row.1)
    }
}

/// The state of the tables at one moment, read in one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// Rows in `pgbench_history`.
    pub history_rows: u64,
    /// Sum of `pgbench_history.delta`.
    pub history: i128,
    /// Sum of `pgbench_accounts.abalance`.
    pub accounts: i128,
    /// Sum of `pgbench_tellers.tbalance`.
    pub tellers: i128,
    /// Sum of `pgbench_branches.bbalance`.
    pub branches: i128,
}

/// The client's counts since the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expectation {
    /// Committed transactions of the scripts that write the history.
    pub committed: u64,
    /// Transactions of these scripts with an unknown outcome.
    pub ambiguous: u64,
}

/// The result of checking one invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantResult {
    /// A stable name.
    pub name: &'static str,
    /// True if it held.
    pub held: bool,
    /// A sentence with the figures compared.
    pub detail: String,
}

/// Reads all five figures in one statement, so that they belong to one snapshot at every level.
const FIGURES: &str = "select (select count(*) from pgbench_history), \
    (select cast(coalesce(sum(delta), 0) as bigint) from pgbench_history), \
    (select cast(coalesce(sum(abalance), 0) as bigint) from pgbench_accounts), \
    (select cast(coalesce(sum(tbalance), 0) as bigint) from pgbench_tellers), \
    (select cast(coalesce(sum(bbalance), 0) as bigint) from pgbench_branches)";

/// Reads the figures before the measured part.
///
/// # Errors
/// A table is missing, or the connection is lost.
pub fn baseline(conn: &mut Connection, db: &Database) -> Result<Baseline, Error> {
    let figures = db.place(FIGURES, &OwnNames::default());
    let rows = conn.query(&figures).map_err(|error| Error::of(error, &figures))?.rows;
    let row = rows.into_iter().next().unwrap_or_default();
    let figure = |index: usize| row.get(index)?.as_ref()?.parse::<i128>().ok();
    let read = (|| {
        Some(Baseline {
            history_rows: u64::try_from(figure(0)?).ok()?,
            history: figure(1)?,
            accounts: figure(2)?,
            tellers: figure(3)?,
            branches: figure(4)?,
        })
    })();
    read.ok_or_else(|| Error::Answer { statement: figures.into_owned(), got: format!("{row:?}") })
}

/// Reads the figures again, and compares their changes with each other and with the client's
/// counts.
///
/// `mix` lists the writes of each script. Scripts other than the built-in ones have no invariants
/// here; a mix that contains one must not be checked.
///
/// # Errors
/// A table is missing, or the connection is lost. A violated invariant isn't an error.
pub fn check(
    conn: &mut Connection,
    db: &Database,
    before: &Baseline,
    expectation: Expectation,
    mix: &[Writes],
) -> Result<Vec<InvariantResult>, Error> {
    Ok(compare(before, &baseline(conn, db)?, expectation, mix))
}

/// Two figures whose changes must be equal.
struct SumPair {
    /// The invariant's name.
    name: &'static str,
    /// Name and change of one figure.
    left: (&'static str, i128),
    /// Name and change of the other figure.
    right: (&'static str, i128),
}

/// Compares the figures without a server.
pub fn compare(
    before: &Baseline,
    after: &Baseline,
    expectation: Expectation,
    mix: &[Writes],
) -> Vec<InvariantResult> {
    let accounts = ("accounts", after.accounts - before.accounts);
    let history = ("history", after.history - before.history);
    let tellers = ("tellers", after.tellers - before.tellers);
    let branches = ("branches", after.branches - before.branches);
    let mut sums = vec![SumPair { name: "sum(accounts) = sum(history)", left: accounts, right: history }];
    if !mix.contains(&Writes::AccountAndHistory) {
        sums.push(SumPair { name: "sum(tellers) = sum(history)", left: tellers, right: history });
        sums.push(SumPair { name: "sum(branches) = sum(history)", left: branches, right: history });
    } else if mix.contains(&Writes::AllTables) {
        // Only a part of the transactions writes these two, so they can only be compared with each
        // other.
        sums.push(SumPair { name: "sum(tellers) = sum(branches)", left: tellers, right: branches });
    } else {
        let nothing = ("nothing that writes them", 0);
        sums.push(SumPair { name: "sum(tellers) unchanged", left: tellers, right: nothing });
        sums.push(SumPair { name: "sum(branches) unchanged", left: branches, right: nothing });
    }
    let mut checked = vec![rows_of_history(before, after, expectation)];
    checked.extend(sums.into_iter().map(|sum| InvariantResult {
        name: sum.name,
        held: sum.left.1 == sum.right.1,
        detail: format!("{} changed by {}, {} by {}", sum.left.0, sum.left.1, sum.right.0, sum.right.1),
    }));
    checked
}

fn rows_of_history(before: &Baseline, after: &Baseline, expectation: Expectation) -> InvariantResult {
    let rows = i128::from(after.history_rows) - i128::from(before.history_rows);
    let least = i128::from(expectation.committed);
    let most = least + i128::from(expectation.ambiguous);
    let ambiguous = match expectation.ambiguous {
        0 => String::new(),
        count => format!(" and {count} ambiguous"),
    };
    InvariantResult {
        name: "history rows = committed",
        held: (least..=most).contains(&rows),
        detail: format!("{rows} new rows in history, {least} transactions committed{ambiguous}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Baseline = Baseline { history_rows: 0, history: 0, accounts: 0, tellers: 0, branches: 0 };

    fn names_of_violated(
        after: Baseline,
        committed: u64,
        ambiguous: u64,
        mix: &[Writes],
    ) -> Vec<&'static str> {
        compare(&ZERO, &after, Expectation { committed, ambiguous }, mix)
            .into_iter()
            .filter(|checked| !checked.held)
            .map(|checked| checked.name)
            .collect()
    }

    #[test]
    fn each_mix_has_its_own_sums() {
        use Writes::{AccountAndHistory, AllTables, Nothing};
        let all = Baseline { history_rows: 3, history: 7, accounts: 7, tellers: 7, branches: 7 };
        let simple = Baseline { tellers: 0, branches: 0, ..all };
        let both = Baseline { tellers: 4, branches: 4, ..all };
        assert!(names_of_violated(all, 3, 0, &[AllTables, Nothing]).is_empty());
        assert!(names_of_violated(simple, 3, 0, &[AccountAndHistory]).is_empty());
        assert!(names_of_violated(both, 3, 0, &[AllTables, AccountAndHistory]).is_empty());
        assert!(names_of_violated(ZERO, 0, 0, &[Nothing]).is_empty());
        assert_eq!(
            names_of_violated(simple, 3, 0, &[AllTables]),
            ["sum(tellers) = sum(history)", "sum(branches) = sum(history)"]
        );
        assert_eq!(
            names_of_violated(both, 3, 0, &[AccountAndHistory]),
            ["sum(tellers) unchanged", "sum(branches) unchanged"]
        );
        let torn = Baseline { branches: 5, ..both };
        assert_eq!(
            names_of_violated(torn, 3, 0, &[AllTables, AccountAndHistory]),
            ["sum(tellers) = sum(branches)"]
        );
        assert_eq!(
            names_of_violated(Baseline { accounts: 8, ..all }, 3, 0, &[AllTables]),
            ["sum(accounts) = sum(history)"]
        );
    }

    #[test]
    fn ambiguous_transactions_may_or_may_not_be_in_history() {
        let mix = [Writes::AllTables];
        let rows = |history_rows| Baseline { history_rows, ..ZERO };
        let violated = ["history rows = committed"];
        assert_eq!(names_of_violated(rows(9), 10, 2, &mix), violated);
        for count in 10..=12 {
            assert!(names_of_violated(rows(count), 10, 2, &mix).is_empty());
        }
        assert_eq!(names_of_violated(rows(13), 10, 2, &mix), violated);
        let checked = compare(&ZERO, &rows(11), Expectation { committed: 10, ambiguous: 2 }, &mix);
        assert_eq!(checked[0].detail, "11 new rows in history, 10 transactions committed and 2 ambiguous");
    }

    #[test]
    fn only_changes_since_the_baseline_count() {
        let before = Baseline { history_rows: 5, history: 1, accounts: 2, tellers: 3, branches: 4 };
        let after = Baseline { history_rows: 6, history: 11, accounts: 12, tellers: 13, branches: 14 };
        let checked =
            compare(&before, &after, Expectation { committed: 1, ambiguous: 0 }, &[Writes::AllTables]);
        assert!(checked.iter().all(|checked| checked.held), "{checked:?}");
    }
}
