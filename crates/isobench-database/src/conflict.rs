//! Classification of errors: which ones are conflicts, and their reason in a few words.
//!
//! The rules themselves are part of each product. Not here: the reaction to a conflict.

use std::borrow::Cow;

use isobench_isolation::Level;
use isobench_pgwire::{ServerError, SqlState};

use crate::facts::conflict::Reason;
use crate::object::object;
use crate::product::Product;

/// An attempt ended by other transactions. The same transaction may succeed when retried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The cause in a few words, for counting: without keys, times or transaction numbers.
    pub reason: Cow<'static, str>,
    /// The table or row that the conflict was about, if the server reports it. There may be as many
    /// as there are rows.
    pub object: Option<Cow<'static, str>>,
}

impl Product {
    /// Classifies an error; `None` if it isn't a conflict.
    ///
    /// `25P02` is never a conflict, because it is only the consequence of an earlier error, and
    /// neither is `40003`, because the transaction may have been committed (see
    /// [`Product::ambiguous`]).
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

    /// True if the error leaves open whether the transaction was committed. Never retried, and
    /// counted separately.
    pub fn ambiguous(&self, code: SqlState) -> bool {
        code == SqlState::STATEMENT_COMPLETION_UNKNOWN
    }
}

/// True if `text` contains `part`, ignoring the case of ASCII letters. An empty part is contained
/// in every text.
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
        // The remainder of "731," is a comma that belongs to the word before.
        if !plain.is_empty() && !word.starts_with(',') {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    Some(plain)
}

/// The word of letters, digits and underscores that starts with `prefix`, with the text after a
/// dash: `RETRY_SERIALIZABLE - failed preemptive refresh due to a conflict: intent on key /Table/…`
/// → `RETRY_SERIALIZABLE: failed preemptive refresh due to a conflict: intent`.
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
    /// True if a transaction at this level can't meet a conflict with this reason.
    pub fn contradicts(&self, level: Level, reason: &str) -> bool {
        self.impossible
            .iter()
            .any(|(strongest, beginning)| level <= *strongest && reason.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::{AURORA_DSQL, COCKROACHDB, H2, POSTGRESQL, UNKNOWN, YUGABYTEDB};

    const RECORDED: &str = include_str!("conflict/recorded.txt");

    /// One of the recorded errors, with the expected reason and object.
    #[derive(Default)]
    struct RecordedError {
        code: String,
        message: String,
        detail: String,
        context: String,
        reason: Option<String>,
        object: Option<String>,
    }

    impl RecordedError {
        fn parse(text: &str) -> RecordedError {
            let mut recorded = RecordedError::default();
            for line in text.lines() {
                let (field, value) = line.split_once(' ').expect("field and value");
                let value = value.trim_start().replace("\\n", "\n");
                match field {
                    "code" => recorded.code = value,
                    "message" => recorded.message = value,
                    "detail" => recorded.detail = value,
                    "context" => recorded.context = value,
                    "reason" => recorded.reason = Some(value),
                    "object" => recorded.object = Some(value),
                    other => panic!("unknown field {other}"),
                }
            }
            recorded
        }
    }

    fn error(code: &str, message: &str, detail: &str, context: &str) -> ServerError {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let error = ServerError::new(SqlState::from_bytes(code.as_bytes()), message);
        ServerError { detail: some(detail), context: some(context), ..error }
    }

    #[test]
    fn recorded_errors_have_their_reasons_and_objects() {
        let products = RECORDED.split("## ").skip(1);
        for (product, section) in
            [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &AURORA_DSQL, &H2, &UNKNOWN].into_iter().zip(products)
        {
            let (name, errors) = section.split_once("\n\n").expect("the product's name");
            assert_eq!(name, product.name);
            for recorded in errors.trim_end().split("\n\n").map(RecordedError::parse) {
                let RecordedError { code, message, detail, context, reason, object } = recorded;
                let found = product.conflict(&error(&code, &message, &detail, &context));
                let found = found.map(|found| (found.reason.into_owned(), found.object.map(Cow::into_owned)));
                assert_eq!(found, reason.map(|reason| (reason, object)), "{name}: {code} {message} {detail}");
            }
        }
        assert_eq!(RECORDED.matches("\ncode ").count(), 67);
    }

    #[test]
    fn a_table_that_the_error_names_is_the_object() {
        let error =
            ServerError { table: Some("t".to_owned()), ..error("40001", "raised by a function", "", "") };
        for product in [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &AURORA_DSQL, &H2, &UNKNOWN] {
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
            for product in [&POSTGRESQL, &COCKROACHDB, &YUGABYTEDB, &AURORA_DSQL, &H2, &UNKNOWN] {
                product.conflict(&error("40001", &message, &detail, &context));
            }
        }
    }
}
