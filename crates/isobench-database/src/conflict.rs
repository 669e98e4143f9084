//! Which errors of a server mean "conflict, try again", and the reason in few words.
//!
//! The rules themselves stand with each product. Not here: what to do about a conflict.

use std::borrow::Cow;

use isobench_isolation::Level;
use isobench_pgwire::{ServerError, SqlState};

use crate::facts::conflict::Reason;
use crate::object::object;
use crate::product::Product;

/// An attempt was ended by other transactions; the same transaction may succeed when tried again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The cause in few words, for counting: no keys, times or transaction numbers in it.
    pub reason: Cow<'static, str>,
    /// The table, or the row of it, that the conflict was about, if the server says so. There may
    /// be as many as rows.
    pub object: Option<Cow<'static, str>>,
}

impl Product {
    /// Tells whether an error is a conflict, and why; `None` for every other error.
    ///
    /// `25P02` is never a conflict, because it only follows an earlier error, and `40003` never is,
    /// because the transaction may have been committed (see [`Product::ambiguous`]).
    pub fn conflict(&self, error: &ServerError) -> Option<Conflict> {
        let (message, detail) = (error.message.as_str(), error.detail.as_deref().unwrap_or(""));
        let rule = self.conflicts.iter().find(|rule| {
            rule.code == error.code
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
        Some(Conflict { reason, object: object(self.objects, error) })
    }

    /// True if the error leaves open whether the transaction was committed: never retried, counted
    /// apart.
    pub fn ambiguous(&self, code: SqlState) -> bool {
        code == SqlState::STATEMENT_COMPLETION_UNKNOWN
    }
}

/// `part` in `text`, whatever the case of ASCII letters; an empty part is everywhere.
fn contains_ignoring_case(text: &str, part: &str) -> bool {
    part.is_empty() || text.as_bytes().windows(part.len()).any(|at| at.eq_ignore_ascii_case(part.as_bytes()))
}

/// `Reason code: Canceled on conflict out to pivot 731, during read.` →
/// `conflict out to pivot, during read`.
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

/// The word of letters, digits and underscores that begins with `prefix`, with what follows it
/// after a dash:
/// `RETRY_SERIALIZABLE - failed preemptive refresh due to a conflict: intent on key /Table/…` →
/// `RETRY_SERIALIZABLE: failed preemptive refresh due to a conflict: intent`.
fn word(text: &str, prefix: &str) -> Option<String> {
    let text = &text[text.find(prefix)?..];
    let (word, rest) =
        text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len()));
    let Some(why) = rest.trim_start().strip_prefix("- ") else { return Some(word.to_owned()) };
    let special = |c: char| c.is_ascii_digit() || matches!(c, ')' | '/' | '"' | '[' | '@');
    let why = why[..why.find(special).unwrap_or(why.len())].trim();
    let why = why.trim_end_matches(" key").trim_end_matches(" on");
    Some(if why.is_empty() { word.to_owned() } else { format!("{word}: {why}") })
}

impl Product {
    /// True if a transaction at this level can't have met a conflict of this reason.
    pub fn contradicts(&self, level: Level, reason: &str) -> bool {
        self.impossible
            .iter()
            .any(|(strongest, beginning)| level <= *strongest && reason.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::{COCKROACHDB, H2, POSTGRESQL, UNKNOWN, YUGABYTEDB};

    type Recorded = (
        &'static Product,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );

    /// Product, code, message, detail, context, reason, object: as recorded from the servers
    /// (PostgreSQL 15.18 and 18.4 say the same) or quoted in their documentation and in reports of
    /// their users.
    #[rustfmt::skip]
    const RECORDED: &[Recorded] = &[
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", "", Some("concurrent update"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent delete", "", "", Some("concurrent delete"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", "SQL statement \"SELECT 1 FROM ONLY \"app\".\"t\" x WHERE \"k\" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x\"", Some("concurrent update"), Some("t")),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", "SQL statement \"DELETE FROM ONLY \"app\".\"c\" WHERE $1 OPERATOR(pg_catalog.=) \"k\"\"", Some("concurrent update"), Some("c")),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", "SQL statement \"update t set v=v+1 where k=i\"\nPL/pgSQL function bump(integer) line 1 at SQL statement", Some("concurrent update"), Some("t")),
        (&POSTGRESQL, "40001", "could not serialize access due to concurrent update", "", "PL/pgSQL function bump(integer) line 1 at SQL statement", Some("concurrent update"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "Reason code: Canceled on identification as a pivot, during write.", "", Some("read/write dependencies: identification as a pivot, during write"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "Reason code: Canceled on conflict out to pivot 731, during read.", "", Some("read/write dependencies: conflict out to pivot, during read"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "", "", Some("read/write dependencies"), None),
        (&POSTGRESQL, "40001", "could not serialize access due to read/write dependencies among transactions", "Reason code: Canceled on identification as a pivot, during commit attempt.", "", Some("read/write dependencies: identification as a pivot, during commit attempt"), None),
        (&POSTGRESQL, "40001", "raised by a function", "", "", Some("serialization failure"), None),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 2022 waits for ShareLock on transaction 954; blocked by process 2026.\nProcess 2026 waits for ShareLock on transaction 953; blocked by process 2022.", "while updating tuple (0,105) in relation \"t\"", Some("deadlock"), Some("t")),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 2022 waits for ExclusiveLock on relation 16414 of database 5; blocked by process 2026.\nProcess 2026 waits for ExclusiveLock on relation 16407 of database 5; blocked by process 2022.", "", Some("deadlock"), Some("relation 16414")),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 9502 waits for ExclusiveLock on tuple (0,84) of relation 16409 of database 5; blocked by process 9497.\nProcess 9497 waits for ShareLock on transaction 1048; blocked by process 9499.\nProcess 9499 waits for ShareLock on transaction 1057; blocked by process 9502.", "", Some("deadlock"), Some("relation 16409")),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 2022 waits for ExclusiveLock on advisory lock [5,0,2,1]; blocked by process 2026.\nProcess 2026 waits for ExclusiveLock on advisory lock [5,0,1,1]; blocked by process 2022.", "", Some("deadlock"), None),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 2022 waits for ShareLock on transaction 958; blocked by process 2026.\nProcess 2026 waits for ShareLock on transaction 957; blocked by process 2022.", "while inserting index tuple (0,119) in relation \"t_pkey\"", Some("deadlock"), Some("t_pkey")),
        (&POSTGRESQL, "40P01", "deadlock detected", "Process 2022 waits for ShareLock on transaction 960; blocked by process 2026.\nProcess 2026 waits for ShareLock on transaction 959; blocked by process 2022.", "while updating tuple (0,105) in relation \"t\"\nSQL statement \"update u set v=v+1 where k=i\"\nPL/pgSQL function bump(integer) line 1 at SQL statement", Some("deadlock"), Some("t")),
        (&POSTGRESQL, "40001", "canceling statement due to conflict with recovery", "User query might have needed to see row versions that must be removed.", "", Some("recovery conflict"), None),
        (&POSTGRESQL, "40001", "terminating connection due to conflict with recovery", "User was holding a relation lock for too long.", "", Some("recovery conflict"), None),
        (&POSTGRESQL, "40P01", "canceling statement due to conflict with recovery", "User transaction caused buffer deadlock with recovery.", "", Some("recovery conflict"), None),
        (&POSTGRESQL, "57P01", "terminating connection due to conflict with recovery", "User was holding shared buffer pin for too long.", "", Some("recovery conflict"), None),
        (&POSTGRESQL, "57P01", "terminating connection due to administrator command", "", "", None, None),
        (&POSTGRESQL, "55P03", "canceling statement due to lock timeout", "", "while updating tuple (0,112) in relation \"t\"", None, None),
        (&POSTGRESQL, "25P02", "current transaction is aborted, commands ignored until end of transaction block", "", "", None, None),
        (&POSTGRESQL, "40003", "could not serialize access due to concurrent update", "", "", None, None),
        (&POSTGRESQL, "23505", "duplicate key value violates unique constraint \"t_pkey\"", "", "", None, None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write at timestamp 1795172178.309668021,0 too old; wrote at 1795172178.310541294,1", "", "", Some("WriteTooOldError"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write for key /Table/110/5/5/0 at timestamp 1701374364.725565161,1 too old; must write at or above 1701374364.783286327,1: \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("WriteTooOldError"), Some("/Table/110/5/5/0")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write for key /Tenant/3/Table/123/1/\"a \\\" b)\"/\"\\xb2\"/0 at timestamp 1715787882.440995219,0 too old; must write at or above 1715787882.509992034,1: \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("WriteTooOldError"), Some("/Table/123/1/\"a \\\" b)\"/\"\\xb2\"/0")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE): \"sql txn\" meta={id=4cd769c7 key=/Table/54/1/1 pri=0.00127172 epo=0}", "", "", Some("RETRY_SERIALIZABLE"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE - failed preemptive refresh due to encountered recently written committed value /Table/105/1/20001/1/0 @1700513356.063385000,2): \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("RETRY_SERIALIZABLE: failed preemptive refresh due to encountered recently written committed value"), Some("/Table/105/1/20001/1/0")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE - failed preemptive refresh due to a conflict: committed value on key /Table/123/8/2/0): \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("RETRY_SERIALIZABLE: failed preemptive refresh due to a conflict: committed value"), Some("/Table/123/8/2/0")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE  - failed preemptive refresh due to conflicting locks on /Table/106/1/918951292305080321/0 [reason=wait_policy] - conflicting txn: meta={id=1b2bf263 key=/Table/106/1/7/0 iso=Serializable seq=1}): \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("RETRY_SERIALIZABLE: failed preemptive refresh due to conflicting locks"), Some("/Table/106/1/918951292305080321/0")),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE - failed preemptive refresh): \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("RETRY_SERIALIZABLE: failed preemptive refresh"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_WRITE_TOO_OLD): \"sql txn\" meta={id=10f4abbc key=/Table/105/1/20001/2/0 iso=Serializable pri=0.00167708 epo=0 ts=1700513366.194063000,2 min=1700513327.262632000,0 seq=1} lock=true stat=PENDING rts=1700513327.262632000,0 wto=false gul=1700513327.762632000,0", "", "", Some("RETRY_WRITE_TOO_OLD"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionAbortedError(ABORT_REASON_PUSHER_ABORTED): \"sql txn\" meta={id=6992aec2}", "", "", Some("ABORT_REASON_PUSHER_ABORTED"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: ReadWithinUncertaintyIntervalError: read at time 1,0 encountered previous write", "", "", Some("ReadWithinUncertaintyIntervalError"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionAbortedError(ABORT_REASON_ABORT_SPAN): \"sql txn\" meta={id=e46fa2ec key=/Table/463/1/1 pri=0.00000000 epo=0 ts=1795331979.535770838,0 min=1795331979.535770838,0 seq=1} lock=true stat=ABORTED rts=1795331979.535770838,0 wto=false max=1795331979.535770838,0", "", "", Some("ABORT_REASON_ABORT_SPAN"), None),
        (&COCKROACHDB, "40001", "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_WRITE_TOO_OLD - WriteTooOld flag converted to WriteTooOldError): \"sql txn\" meta={id=7226d702 key=/Table/354/1/1352 pri=0.00684750 epo=0 ts=1795331526.408849950,2 min=1795331526.263117365,0 seq=3} lock=true stat=PENDING rts=1795331526.408849950,2 wto=false max=1795331526.263117365,0", "", "", Some("RETRY_WRITE_TOO_OLD: WriteTooOld flag converted to WriteTooOldError"), None),
        (&COCKROACHDB, "25000", "current transaction is committed, commands ignored until end of transaction block", "", "", None, None),
        (&COCKROACHDB, "XXUUU", "there is no transaction in progress", "", "", None, None),
        (&COCKROACHDB, "40001", "restart transaction: x", "", "", Some("serialization failure"), None),
        (&COCKROACHDB, "40003", "result is ambiguous: error=rpc error", "", "", None, None),
        (&COCKROACHDB, "25P02", "current transaction is aborted, commands ignored until end of transaction block", "", "", None, None),
        (&COCKROACHDB, "23503", "foreign key requires an existing index on columns (\"v\")", "", "", None, None),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "Operation failed. Try again.: 8a1f conflicts with higher priority transaction: 9b2e", "", Some("conflicts with higher priority transaction"), None),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update (query layer retry isn't possible because this is not the first command in the transaction. Consider using READ COMMITTED isolation level.)", "aa443ba3-0985-45a8-9c91-7869186302c9 conflict with concurrently committed data. Value write after transaction start: doc ht ({ physical: 1767691129362775 }) > read time ({ physical: 1767691128021948 }), key: SubDocKey(DocKey(CoTableId=00000001000030008001000000001f90, [], [16659, 3]), []): kConflict", "", Some("conflict with committed data"), Some("DocKey(CoTableId=00000001000030008001000000001f90, [], [16659, 3])")),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "Conflict with concurrently committed data. Value write after transaction start: doc ht ({ physical: 1736274471551960 logical: 8 }) >= read time ({ physical: 1736274471417358 }): kConflict", "", Some("conflict with committed data"), None),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "Value write after transaction start: doc ht ({ physical: 1736274471551960 }) >= read time ({ physical: 1736274471417358 }), key: SubDocKey(DocKey(0x1210, [1], []), [SystemColumnId(0)]): kConflict", "", Some("conflict with committed data"), Some("DocKey(0x1210, [1], [])")),
        (&YUGABYTEDB, "40001", "could not serialize access due to concurrent update", "", "", Some("concurrent update"), None),
        (&YUGABYTEDB, "40001", "Restart read required at: { read: { physical: 1592 } }", "", "", Some("restart read required"), None),
        (&YUGABYTEDB, "40001", "current transaction is expired or aborted", "", "", Some("expired or aborted by a conflict"), None),
        (&YUGABYTEDB, "40001", "Heartbeat: Transaction 2f1 expired or aborted by a conflict: 40001", "", "", Some("expired or aborted by a conflict"), None),
        (&YUGABYTEDB, "40P01", "deadlock detected", "", "", Some("deadlock"), None),
        (&YUGABYTEDB, "XX000", "Query error: Restart read required at: { read: { physical: 1592 } }", "", "", Some("restart read required"), None),
        (&YUGABYTEDB, "XX000", "Operation failed. Try again.: 8a1f Conflicts with higher priority transaction: 9b2e", "", "", Some("conflicts with higher priority transaction"), None),
        (&YUGABYTEDB, "XX000", "some internal error", "", "", None, None),
        (&H2, "40001", "Deadlock detected. The current transaction was rolled back. Details: \"pgbench_branches\"; SQL statement: … [40001-240]", "", "", Some("deadlock or concurrent update"), Some("pgbench_branches")),
        (&H2, "HYT00", "Timeout trying to lock table \"c\"; SQL statement: …", "", "", Some("lock timeout"), Some("c")),
        (&H2, "42S04", "Table \"q\" not found", "", "", None, None),
        (&UNKNOWN, "40001", "anything", "", "", Some("serialization failure"), None),
        (&UNKNOWN, "40P01", "anything", "", "", Some("deadlock"), None),
        (&UNKNOWN, "40003", "anything", "", "", None, None),
    ];

    fn error(code: &str, message: &str, detail: &str, context: &str) -> ServerError {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let error = ServerError::new(SqlState::from_bytes(code.as_bytes()), message);
        ServerError { detail: some(detail), context: some(context), ..error }
    }

    #[test]
    fn recorded_errors_have_their_reasons_and_objects() {
        for (product, code, message, detail, context, reason, object) in RECORDED {
            let found = product.conflict(&error(code, message, detail, context));
            let found = found.as_ref().map(|found| (found.reason.as_ref(), found.object.as_deref()));
            assert_eq!(
                found,
                reason.map(|reason| (reason, *object)),
                "{}: {code} {message} {detail}",
                product.name
            );
        }
    }

    #[test]
    fn a_table_that_the_error_names_is_the_object() {
        let error =
            ServerError { table: Some("t".to_owned()), ..error("40001", "raised by a function", "", "") };
        for product in [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &H2, &UNKNOWN] {
            assert_eq!(product.conflict(&error).unwrap().object.as_deref(), Some("t"), "{}", product.name);
        }
    }

    #[test]
    fn a_long_key_is_cut() {
        let key = format!("/Table/110/1/\"{}\"/0", "é ".repeat(200));
        let error = error(
            "40001",
            &format!("restart transaction: WriteTooOldError: write for key {key} at timestamp 1"),
            "",
            "",
        );
        let object = COCKROACHDB.conflict(&error).unwrap().object.unwrap();
        assert_eq!((object.chars().count(), &object[..16]), (101, "/Table/110/1/\"é"));
    }

    #[test]
    fn only_40003_is_ambiguous() {
        assert!(COCKROACHDB.ambiguous(SqlState::STATEMENT_COMPLETION_UNKNOWN));
        assert!(!COCKROACHDB.ambiguous(SqlState::SERIALIZATION_FAILURE));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(
            message in "(RETRY_X - |write for key )?(/Table/)?.*",
            detail in "(Reason code: |DocKey\\(DocKey\\()?.*",
            context in "(.* in relation \"|SQL statement \"(select|update|delete|insert)? ?(from|into)? ?(only)? ?)?.*",
        ) {
            for product in [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &H2, &UNKNOWN] {
                product.conflict(&error("40001", &message, &detail, &context));
            }
        }
    }
}
