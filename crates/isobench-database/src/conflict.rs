//! Which errors of a server mean "conflict, try again", and the reason in few words.
//!
//! The rules themselves stand with each product. Not here: what to do about a conflict.

use std::borrow::Cow;

use isobench_pgwire::SqlState;

use crate::product::Product;

/// An attempt was ended by other transactions; the same transaction may succeed when tried again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The cause in few words, for counting: no keys, times or transaction numbers in it.
    pub reason: Cow<'static, str>,
}

/// One row: an error that is a conflict. The first row that matches wins.
#[derive(Debug, Clone, Copy)]
pub struct ConflictRule {
    /// The error code that must be there.
    pub code: SqlState,
    /// A part of message or detail that must be there, in any case of letters; empty: any text.
    pub contains: &'static str,
    /// How the conflict is named.
    pub reason: Reason,
}

/// How the reason of a conflict is found.
#[derive(Debug, Clone, Copy)]
pub enum Reason {
    /// Always this text.
    Named(&'static str),
    /// This text, a colon and PostgreSQL's `Reason code:` from the detail, without its numbers.
    WithReasonCode(&'static str),
    /// The first word of the message that begins like this, for example `ABORT_REASON_`.
    Word(&'static str),
}

/// Shorthand for a row of a product's table.
pub(crate) const fn rule(code: SqlState, contains: &'static str, reason: Reason) -> ConflictRule {
    ConflictRule { code, contains, reason }
}

/// The rows for a server about which nothing else is known: the standard's and PostgreSQL's codes.
pub(crate) static GENERIC: [ConflictRule; 2] = [
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
];

impl Product {
    /// Tells whether an error is a conflict, and why; `None` for every other error.
    ///
    /// `25P02` is never a conflict, because it only follows an earlier error, and `40003` never is, because the
    /// transaction may have been committed (see [`Product::ambiguous`]).
    pub fn conflict(&self, code: SqlState, message: &str, detail: Option<&str>) -> Option<Conflict> {
        let detail = detail.unwrap_or("");
        let rule = self.conflicts.iter().find(|rule| {
            rule.code == code
                && (contains_ignoring_case(message, rule.contains)
                    || contains_ignoring_case(detail, rule.contains))
        })?;
        let reason = match rule.reason {
            Reason::Named(name) => Cow::Borrowed(name),
            Reason::WithReasonCode(name) => match reason_code(detail) {
                Some(text) => Cow::Owned(format!("{name}: {text}")),
                None => Cow::Borrowed(name),
            },
            Reason::Word(prefix) => word(message, prefix).map_or(Cow::Borrowed(prefix), Cow::Owned),
        };
        Some(Conflict { reason })
    }

    /// True if the error leaves open whether the transaction was committed: never retried, counted apart.
    pub fn ambiguous(&self, code: SqlState) -> bool {
        code == SqlState::STATEMENT_COMPLETION_UNKNOWN
    }
}

/// `part` in `text`, whatever the case of ASCII letters; an empty part is everywhere.
fn contains_ignoring_case(text: &str, part: &str) -> bool {
    part.is_empty() || text.as_bytes().windows(part.len()).any(|at| at.eq_ignore_ascii_case(part.as_bytes()))
}

/// `Reason code: Canceled on conflict out to pivot 731, during read.` → `conflict out to pivot, during read`.
fn reason_code(detail: &str) -> Option<String> {
    let (_, text) = detail.split_once("Reason code: ")?;
    let text = text.lines().next()?.trim_end_matches('.');
    let text = text.strip_prefix("Canceled on ").unwrap_or(text);
    let words: Vec<String> = text
        .split(' ')
        .map(|word| word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>())
        .collect();
    let mut plain = String::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        // What is left of "731," is its comma, which belongs to the word before.
        if !plain.is_empty() && !word.starts_with(',') {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    Some(plain)
}

/// The word of letters, digits and underscores that begins with `prefix`.
fn word(text: &str, prefix: &str) -> Option<String> {
    let start = text.find(prefix)?;
    let found: String =
        text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::{COCKROACHDB, H2, POSTGRESQL, UNKNOWN, YUGABYTEDB};

    /// Product, code, message, detail, reason: as recorded from the servers or quoted in their documentation.
    #[rustfmt::skip]
    const RECORDED: &[(&Product, &str, &str, &str, Option<&str>)] = &[
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", Some("concurrent update")),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent delete", "", Some("concurrent delete")),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "Reason code: Canceled on identification as a pivot, during write.", Some("read/write dependencies: identification as a pivot, during write")),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "Reason code: Canceled on conflict out to pivot 731, during read.", Some("read/write dependencies: conflict out to pivot, during read")),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "", Some("read/write dependencies")),
        (&POSTGRESQL, "40001", "raised by a function", "", Some("serialization failure")),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 1 waits for ShareLock on transaction 2; …", Some("deadlock")),
        (&POSTGRESQL, "25P02", "current transaction is aborted, commands ignored until end of transaction block", "", None),
        (&POSTGRESQL, "40003", "could not serialize access due to concurrent update", "", None),
        (&POSTGRESQL, "23505", "duplicate key value violates unique constraint \"t_pkey\"", "", None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write at timestamp 1795172178.309668021,0 too old; wrote at 1795172178.310541294,1", "", Some("WriteTooOldError")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE): \"sql txn\" meta={id=4cd769c7}", "", Some("RETRY_SERIALIZABLE")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionAbortedError(ABORT_REASON_PUSHER_ABORTED): \"sql txn\" meta={id=6992aec2}", "", Some("ABORT_REASON_PUSHER_ABORTED")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: ReadWithinUncertaintyIntervalError: read at time 1,0 encountered previous write", "", Some("ReadWithinUncertaintyIntervalError")),
        (&COCKROACHDB, "40001", "restart transaction: x", "", Some("serialization failure")),
        (&COCKROACHDB, "40003", "result is ambiguous: error=rpc error", "", None),
        (&COCKROACHDB, "25P02", "current transaction is aborted, commands ignored until end of transaction block", "", None),
        (&COCKROACHDB, "23503", "foreign key requires an existing index on columns (\"v\")", "", None),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "Operation failed. Try again.: 8a1f conflicts with higher priority transaction: 9b2e", Some("conflicts with higher priority transaction")),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "", Some("concurrent update")),
        (&YUGABYTEDB, "40001", "Restart read required at: { read: { physical: 1592 } }", "", Some("restart read required")),
        (&YUGABYTEDB, "40001", "current transaction is expired or aborted", "", Some("expired or aborted by a conflict")),
        (&YUGABYTEDB, "40001", "Heartbeat: Transaction 2f1 expired or aborted by a conflict: 40001", "", Some("expired or aborted by a conflict")),
        (&YUGABYTEDB, "40P01", "deadlock detected", "", Some("deadlock")),
        (&YUGABYTEDB, "XX000", "Query error: Restart read required at: { read: { physical: 1592 } }", "", Some("restart read required")),
        (&YUGABYTEDB, "XX000", "Operation failed. Try again.: 8a1f Conflicts with higher priority transaction: 9b2e", "", Some("conflicts with higher priority transaction")),
        (&YUGABYTEDB, "XX000", "some internal error", "", None),
        (&H2, "40001", "Deadlock detected. The current transaction was rolled back. Details: \"pgbench_branches\"; SQL statement: … [40001-240]", "", Some("deadlock or concurrent update")),
        (&H2, "HYT00", "Timeout trying to lock table \"c\"; SQL statement: …", "", Some("lock timeout")),
        (&H2, "42S04", "Table \"q\" not found", "", None),
        (&UNKNOWN, "40001", "anything", "", Some("serialization failure")),
        (&UNKNOWN, "40P01", "anything", "", Some("deadlock")),
        (&UNKNOWN, "40003", "anything", "", None),
    ];

    #[test]
    fn recorded_errors_have_their_reasons() {
        for (product, code, message, detail, reason) in RECORDED {
            let found = product.conflict(SqlState::from_bytes(code.as_bytes()), message, Some(detail));
            let found = found.as_ref().map(|conflict| conflict.reason.as_ref());
            assert_eq!(found, *reason, "{}: {code} {message}", product.name);
        }
    }

    #[test]
    fn only_40003_is_ambiguous() {
        assert!(COCKROACHDB.ambiguous(SqlState::STATEMENT_COMPLETION_UNKNOWN));
        assert!(!COCKROACHDB.ambiguous(SqlState::SERIALIZATION_FAILURE));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(message in ".*", detail in "(Reason code: )?.*") {
            for product in [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &H2, &UNKNOWN] {
                product.conflict(SqlState::SERIALIZATION_FAILURE, &message, Some(&detail));
            }
        }
    }
}
