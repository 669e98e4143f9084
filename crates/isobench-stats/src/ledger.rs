//! The ledger of a run: every attempt and every transaction in exactly one bucket, and the clients'
//! time by use.
//!
//! The same type from the recorders to the result document, where it is JSON. Not here: why an
//! attempt ended (SQLSTATE, command, reason), latencies, and who counts.

use std::iter::Sum;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Attempts (pgbench: tries) by how they ended. `started` is the sum of the others.
///
/// Population: executions of a script, from its first command on, that started after the warm-up,
/// and the further ones that the server made within a statement and reported (`--@ inside`). Unit:
/// attempts. Merged by addition. pgbench shows only sums of some of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempts {
    /// Attempts that were started.
    pub started: u64,
    /// Attempts whose COMMIT the server acknowledged.
    pub committed: u64,
    /// Attempts that failed with a retryable error and whose transaction was to be tried again.
    /// pgbench: the numerator of "total number of retries".
    pub retried: u64,
    /// Attempts that failed with a retryable error after which the transaction was given up, since
    /// its tries or its latency limit were exhausted. pgbench: "number of failed transactions".
    pub given_up: u64,
    /// Attempts whose COMMIT the server acknowledged, and whose work was undone by an error that
    /// the script's own SQL caught and didn't raise again (`--@ swallowed`). pgbench counts them as
    /// processed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swallowed: u64,
    /// Attempts that ran to the end of a script that rolled back its last block by itself (ROLLBACK)
    /// and committed none. Statements outside of blocks aside, they changed nothing, as was asked for.
    /// pgbench counts them as processed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// Attempts with an unknown outcome: SQLSTATE 40003, or the connection was lost between sending
    /// COMMIT and its reply. pgbench has no such bucket.
    pub ambiguous: u64,
    /// Attempts that the end of the run (its time, Ctrl-C) interrupted. pgbench counts them
    /// nowhere.
    pub cut_off: u64,
    /// Attempts that ended with an error that is never retried: the client aborted or, if asked to
    /// continue, abandoned the transaction.
    pub errored: u64,
}

/// Transactions by how they ended. `total` is the sum of the others.
///
/// Population: executions of a script, however many attempts each took, whose first attempt started
/// after the warm-up, or that were skipped. A transaction still waiting for its scheduled start at
/// the end isn't among them. Unit: transactions. Merged by addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transactions {
    /// All of them.
    pub total: u64,
    /// Transactions that committed; the only ones in the throughput. pgbench: "number of
    /// transactions actually processed".
    pub committed: u64,
    /// Transactions given up after a retryable error. pgbench: "number of failed transactions".
    pub given_up: u64,
    /// Transactions that the server acknowledged and whose work was lost in an error that the
    /// script's own SQL caught. pgbench: part of "number of transactions actually processed".
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swallowed: u64,
    /// Transactions that their own script rolled back, as the attempts. pgbench: part of "number of
    /// transactions actually processed".
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// Transactions with an unknown outcome.
    pub ambiguous: u64,
    /// Transactions that the end of the run interrupted, during an attempt or during the backoff
    /// before the next one.
    pub cut_off: u64,
    /// Transactions that ended with an error that is never retried.
    pub errored: u64,
    /// Transactions that were never started, since their scheduled start was later than the latency
    /// limit allows. pgbench: "number of transactions skipped".
    pub skipped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The clients' time by use, added up over all clients: two clients working for a second make two
/// seconds.
///
/// Unit: seconds in JSON, nanoseconds in memory. Merged by addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeLedger {
    /// Time of the attempts that committed, or that their own script rolled back, from the start of the
    /// attempt to the last reply, without what failed attempts inside the server took of it (`--@ inside`, `wasted`).
    #[serde(with = "in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub useful: u64,
    /// Time of the attempts that ended in any other bucket, from the start of the attempt to its
    /// end, including the ROLLBACK, and what failed attempts inside the server took of a committed
    /// one.
    #[serde(with = "in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub wasted: u64,
    /// Time between the end of a failed attempt and the start of the next one.
    #[serde(with = "in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub backoff: u64,
    /// Time in which a client had nothing to do, since its next transaction wasn't due yet (rate,
    /// think time).
    #[serde(with = "in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub waiting: u64,
}

/// Nanoseconds in seconds.
pub fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// Nanoseconds in memory, seconds in JSON.
mod in_seconds {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub fn serialize<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(super::seconds(*ns))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and NaN becomes 0"
    )]
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // The two parts apart, since their product with 1e9 isn't exact.
        let whole = (seconds.trunc() as u64).saturating_mul(1_000_000_000);
        Ok(whole.saturating_add((seconds.fract() * 1e9).round() as u64))
    }
}

/// The whole account of a run, a round, a script or a client.
///
/// Merged by addition, so the ledgers of workers add up to the ledger of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The attempts by how they ended.
    pub attempts: Attempts,
    /// The transactions by how they ended.
    pub transactions: Transactions,
    /// The clients' time by use.
    pub time: TimeLedger,
    /// Attempts ended by a conflict: SQLSTATE 40001 (serialization failure) or 40P01 (deadlock), or
    /// what the server's product uses instead. They lie in the buckets retried, given up,
    /// swallowed, cut off or errored.
    pub conflicts: u64,
    /// Attempts ended by an error that is no conflict but is retried as one, because the plan names
    /// its SQLSTATE. They lie in the buckets retried, given up or cut off.
    pub further_errors: u64,
    /// Further attempts that were started, that is, attempts beyond the first one of their
    /// transaction, by the client or inside the server (`--@ inside`). pgbench: "total number of
    /// retries", which has the client's only.
    pub retries: u64,
    /// Transactions whose latency exceeded the latency limit. pgbench: "number of transactions
    /// above the … latency limit".
    pub late: u64,
}

/// An identity of the ledger that doesn't hold: something was counted twice or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Two counts that must be equal differ.
    #[error(
        "the ledger doesn't add up: {left_name} ({left}) must equal {right_name} ({right}); please report this"
    )]
    Unequal {
        /// The name of the left side.
        left_name: &'static str,
        /// Its value.
        left: u128,
        /// The name of the right side.
        right_name: &'static str,
        /// Its value.
        right: u128,
    },
    /// A count exceeds what it is a part of.
    #[error(
        "the ledger doesn't add up: {part_name} ({part}) must not exceed {whole_name} ({whole}); please report this"
    )]
    Exceeds {
        /// The part.
        part_name: &'static str,
        /// Its value.
        part: u128,
        /// The name of the whole.
        whole_name: &'static str,
        /// Its value.
        whole: u128,
    },
}

fn total(counts: &[u64]) -> u128 {
    counts.iter().copied().map(u128::from).sum()
}

fn equal(
    left_name: &'static str,
    left: u128,
    right_name: &'static str,
    right: u128,
) -> Result<(), LedgerError> {
    if left == right { Ok(()) } else { Err(LedgerError::Unequal { left_name, left, right_name, right }) }
}

fn within(
    part_name: &'static str,
    part: u128,
    whole_name: &'static str,
    whole: u128,
) -> Result<(), LedgerError> {
    if part <= whole { Ok(()) } else { Err(LedgerError::Exceeds { part_name, part, whole_name, whole }) }
}

/// Adds counts field by field. Saturating, since a ledger may come from a damaged file.
macro_rules! add_fields {
    ($to:expr, $from:expr, $($field:ident),+) => { $( $to.$field = $to.$field.saturating_add($from.$field); )+ };
}

impl Attempts {
    /// Checks that every attempt that was started lies in exactly one bucket.
    ///
    /// # Errors
    /// [`LedgerError::Unequal`] if `started` isn't the sum of the buckets.
    pub fn check(&self) -> Result<(), LedgerError> {
        let buckets = [
            self.committed,
            self.retried,
            self.given_up,
            self.swallowed,
            self.rolled_back,
            self.ambiguous,
            self.cut_off,
            self.errored,
        ];
        equal("attempts started", self.started.into(), "the sum of the attempts' buckets", total(&buckets))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        add_fields!(
            self,
            other,
            started,
            committed,
            retried,
            given_up,
            swallowed,
            rolled_back,
            ambiguous,
            cut_off,
            errored
        );
    }
}

impl Transactions {
    /// Checks that every transaction lies in exactly one bucket.
    ///
    /// # Errors
    /// [`LedgerError::Unequal`] if `total` isn't the sum of the buckets.
    pub fn check(&self) -> Result<(), LedgerError> {
        let buckets = [
            self.committed,
            self.given_up,
            self.swallowed,
            self.rolled_back,
            self.ambiguous,
            self.cut_off,
            self.errored,
            self.skipped,
        ];
        equal("transactions", self.total.into(), "the sum of the transactions' buckets", total(&buckets))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        add_fields!(
            self,
            other,
            total,
            committed,
            given_up,
            swallowed,
            rolled_back,
            ambiguous,
            cut_off,
            errored,
            skipped
        );
    }
}

impl TimeLedger {
    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        add_fields!(self, other, useful, wasted, backoff, waiting);
    }

    /// The share of the clients' busy time that went into attempts which didn't commit: wasted ÷
    /// (useful + wasted), 0 to 1; 0 when there was no busy time. Backoff and waiting are idle time.
    pub fn wasted_share(&self) -> f64 {
        share(self.wasted as f64, self.useful as f64 + self.wasted as f64)
    }
}

impl Ledger {
    /// Checks every identity of the account. Holds at the end of a run, not while attempts are
    /// under way.
    ///
    /// | identity | because |
    /// |---|---|
    /// | attempts started = sum of their buckets | an attempt ends in one way |
    /// | transactions = sum of their buckets | a transaction ends in one way |
    /// | committed, given up, swallowed, rolled back, ambiguous, errored: as many attempts as transactions | these end the transaction with the attempt |
    /// | attempts cut off ≤ transactions cut off | a transaction may also be cut off during its backoff |
    /// | attempts started = transactions − skipped + retries | a first attempt each, and the further ones |
    /// | conflicts ≤ attempts retried, given up, swallowed, cut off or errored | a committed attempt met no conflict |
    /// | conflicts and further errors ≤ attempts retried, given up, swallowed, cut off or errored | an attempt ends by one error |
    /// | late ≤ transactions − skipped | only what ran has a latency |
    ///
    /// From these follows: attempts retried − retries = transactions − attempts cut off, the
    /// transactions that the end of the run met during a backoff.
    ///
    /// # Errors
    /// The first identity that doesn't hold, with both sides.
    pub fn check(&self) -> Result<(), LedgerError> {
        let (attempts, transactions) = (&self.attempts, &self.transactions);
        attempts.check()?;
        transactions.check()?;
        for (attempts_name, attempts, transactions_name, transactions) in [
            ("committed attempts", attempts.committed, "committed transactions", transactions.committed),
            ("attempts given up", attempts.given_up, "transactions given up", transactions.given_up),
            ("swallowed attempts", attempts.swallowed, "swallowed transactions", transactions.swallowed),
            (
                "attempts rolled back",
                attempts.rolled_back,
                "transactions rolled back",
                transactions.rolled_back,
            ),
            ("ambiguous attempts", attempts.ambiguous, "ambiguous transactions", transactions.ambiguous),
            ("errored attempts", attempts.errored, "errored transactions", transactions.errored),
        ] {
            equal(attempts_name, attempts.into(), transactions_name, transactions.into())?;
        }
        within(
            "attempts cut off",
            attempts.cut_off.into(),
            "transactions cut off",
            transactions.cut_off.into(),
        )?;
        equal(
            "attempts started plus transactions skipped",
            total(&[attempts.started, transactions.skipped]),
            "transactions plus retries",
            total(&[transactions.total, self.retries]),
        )?;
        let failed = total(&[
            attempts.retried,
            attempts.given_up,
            attempts.swallowed,
            attempts.cut_off,
            attempts.errored,
        ]);
        within("conflicts", self.conflicts.into(), "attempts that failed", failed)?;
        within(
            "conflicts and further errors",
            total(&[self.conflicts, self.further_errors]),
            "attempts that failed",
            failed,
        )?;
        within(
            "late plus skipped transactions",
            total(&[self.late, transactions.skipped]),
            "transactions",
            transactions.total.into(),
        )
    }

    /// Adds the account of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.attempts.merge(&other.attempts);
        self.transactions.merge(&other.transactions);
        self.time.merge(&other.time);
        add_fields!(self, other, conflicts, further_errors, retries, late);
    }

    /// Attempts ended by a conflict ÷ attempts started, 0 to 1; 0 when nothing was started.
    pub fn conflict_ratio(&self) -> f64 {
        share(self.conflicts as f64, self.attempts.started as f64)
    }

    /// Further attempts ÷ transactions that ran (all but the skipped), 0 or more; 0 when nothing
    /// ran.
    pub fn retries_per_transaction(&self) -> f64 {
        let ran = self.transactions.total.saturating_sub(self.transactions.skipped);
        share(self.retries as f64, ran as f64)
    }

    /// The share of the clients' busy time that was wasted, see [`TimeLedger::wasted_share`].
    pub fn wasted_share(&self) -> f64 {
        self.time.wasted_share()
    }
}

impl<'a> Sum<&'a Ledger> for Ledger {
    fn sum<I: Iterator<Item = &'a Ledger>>(ledgers: I) -> Ledger {
        ledgers.fold(Ledger::default(), |mut sum, ledger| {
            sum.merge(ledger);
            sum
        })
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The end of a transaction of a made-up run, after any number of retried attempts.
    #[derive(Debug, Clone, Copy)]
    enum End {
        Committed,
        GivenUp,
        Swallowed,
        RolledBack,
        Ambiguous,
        CutOff,
        CutOffInBackoff,
        Errored,
        Skipped,
    }

    fn count(ledger: &mut Ledger, end: End, retried: u64) {
        let (attempts, transactions) = (&mut ledger.attempts, &mut ledger.transactions);
        let mut nowhere = 0;
        let (last_attempt, transaction) = match end {
            End::Committed => (&mut attempts.committed, &mut transactions.committed),
            End::GivenUp => (&mut attempts.given_up, &mut transactions.given_up),
            End::Swallowed => (&mut attempts.swallowed, &mut transactions.swallowed),
            End::RolledBack => (&mut attempts.rolled_back, &mut transactions.rolled_back),
            End::Ambiguous => (&mut attempts.ambiguous, &mut transactions.ambiguous),
            End::CutOff => (&mut attempts.cut_off, &mut transactions.cut_off),
            End::CutOffInBackoff => (&mut nowhere, &mut transactions.cut_off),
            End::Errored => (&mut attempts.errored, &mut transactions.errored),
            End::Skipped => (&mut nowhere, &mut transactions.skipped),
        };
        *last_attempt += 1;
        *transaction += 1;
        transactions.total += 1;
        // A transaction in its backoff has failed at least once, a skipped one never.
        let (retried, started) = match end {
            End::Skipped => return,
            End::CutOffInBackoff => (retried.max(1), retried.max(1)),
            _ => (retried, retried + 1),
        };
        attempts.retried += retried;
        attempts.started += started;
        ledger.retries += started - 1;
        ledger.conflicts += retried + u64::from(matches!(end, End::GivenUp | End::Swallowed));
    }

    fn ends() -> impl Strategy<Value = Vec<(End, u64)>> {
        let end = prop_oneof![
            Just(End::Committed),
            Just(End::GivenUp),
            Just(End::Swallowed),
            Just(End::RolledBack),
            Just(End::Ambiguous),
            Just(End::CutOff),
            Just(End::CutOffInBackoff),
            Just(End::Errored),
            Just(End::Skipped),
        ];
        prop::collection::vec((end, 0_u64..5), 0..60)
    }

    /// Every count of a ledger, to damage one of them.
    fn counts(ledger: &mut Ledger) -> Vec<&mut u64> {
        let (a, t) = (&mut ledger.attempts, &mut ledger.transactions);
        vec![
            &mut a.started,
            &mut a.committed,
            &mut a.retried,
            &mut a.given_up,
            &mut a.swallowed,
            &mut a.ambiguous,
            &mut a.cut_off,
            &mut a.errored,
            &mut t.total,
            &mut t.committed,
            &mut t.given_up,
            &mut t.swallowed,
            &mut t.ambiguous,
            &mut t.cut_off,
            &mut t.errored,
            &mut t.skipped,
            &mut ledger.retries,
        ]
    }

    proptest! {
        #[test]
        fn a_true_account_checks_and_merging_equals_counting_together(ends in ends(), split in 0_usize..60) {
            let (mut whole, mut left, mut right) = (Ledger::default(), Ledger::default(), Ledger::default());
            for (index, (end, retried)) in ends.into_iter().enumerate() {
                count(&mut whole, end, retried);
                count(if index < split { &mut left } else { &mut right }, end, retried);
            }
            prop_assert_eq!(whole.check(), Ok(()));
            prop_assert_eq!([left, right].iter().sum::<Ledger>(), whole);
            prop_assert!((0.0..=1.0).contains(&whole.conflict_ratio()));
        }

        #[test]
        fn one_wrong_count_is_always_noticed(ends in ends(), which in 0_usize..17) {
            let mut ledger = Ledger::default();
            for (end, retried) in ends {
                count(&mut ledger, end, retried);
            }
            *counts(&mut ledger)[which] += 1;
            prop_assert!(ledger.check().is_err());
        }

        #[test]
        fn nanoseconds_survive_the_way_through_seconds(useful in 0_u64..1 << 52, wasted in 0_u64..1 << 40) {
            let time = TimeLedger { useful, wasted, backoff: 1, waiting: 999_999_999 };
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<TimeLedger>(&json).unwrap(), time);
        }
    }

    #[test]
    fn an_error_names_both_sides() {
        let ledger = Ledger {
            attempts: Attempts { started: 3, committed: 2, ..Attempts::default() },
            ..Ledger::default()
        };
        assert_eq!(
            ledger.check().unwrap_err().to_string(),
            "the ledger doesn't add up: attempts started (3) must equal the sum of the attempts' \
             buckets (2); please report this"
        );
    }

    #[test]
    fn a_conflict_in_a_committed_attempt_is_refused() {
        let mut ledger = Ledger::default();
        count(&mut ledger, End::Committed, 0);
        ledger.conflicts = 1;
        assert!(matches!(ledger.check(), Err(LedgerError::Exceeds { part_name: "conflicts", .. })));
    }

    #[test]
    fn more_late_transactions_than_ran_are_refused() {
        let mut ledger = Ledger::default();
        count(&mut ledger, End::Committed, 0);
        count(&mut ledger, End::Skipped, 0);
        ledger.late = 2;
        assert!(ledger.check().is_err());
        ledger.late = 1;
        assert_eq!(ledger.check(), Ok(()));
    }

    fn figures(ledger: &Ledger) -> String {
        let (conflicts, retries) = (ledger.conflict_ratio(), ledger.retries_per_transaction());
        format!("{conflicts:.2} {retries:.2} {:.2}", ledger.wasted_share())
    }

    #[test]
    fn shares_of_nothing_are_zero() {
        assert_eq!(figures(&Ledger::default()), "0.00 0.00 0.00");
    }

    #[test]
    fn shares_are_what_they_say() {
        let mut ledger = Ledger::default();
        count(&mut ledger, End::Committed, 3);
        count(&mut ledger, End::Skipped, 0);
        ledger.time = TimeLedger { useful: 1, wasted: 3, backoff: 100, waiting: 100 };
        assert_eq!(figures(&ledger), "0.75 3.00 0.75");
    }

    #[test]
    fn json_has_seconds_that_a_person_would_write() {
        let time = TimeLedger { useful: 1_500_000_000, wasted: 100_000_000, backoff: 1, waiting: 0 };
        let json = "{\"useful\":1.5,\"wasted\":0.1,\"backoff\":1e-9,\"waiting\":0.0}";
        assert_eq!(serde_json::to_string(&time).unwrap(), json);
        let beyond = "{\"useful\":-1.0,\"wasted\":1e300,\"backoff\":0.0,\"waiting\":0.0}";
        let read: TimeLedger = serde_json::from_str(beyond).unwrap();
        assert_eq!((read.useful, read.wasted), (0, u64::MAX));
    }

    #[test]
    fn counts_from_a_damaged_file_do_not_overflow() {
        let full = Attempts { started: u64::MAX, committed: u64::MAX, retried: 1, ..Attempts::default() };
        let mut sum = full;
        sum.merge(&full);
        assert_eq!(sum.started, u64::MAX);
        assert!(full.check().is_err());
    }
}
