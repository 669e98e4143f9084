//! What of texts and values is kept.

use isobench_capture::Datum;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::sql;
use crate::value::{self, oid};

/// The longest value that is kept, in bytes. Of longer ones a hash is kept.
pub(crate) const LONGEST: usize = 1024;

/// What of texts and values is kept, and the key of their hashes. The key is random and is never
/// written, so that a hash can't be found by trying likely values.
pub(crate) struct Policy {
    key: hmac::Key,
    /// True if text-like values become hashes.
    pub(crate) redact: bool,
}

impl Policy {
    /// A policy with a new key; `None` if the system has no random numbers.
    pub(crate) fn new(redact: bool) -> Option<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        Some(Self { key, redact })
    }

    /// A parameter or a value of a result, in its format: 0 text, 1 binary.
    pub(crate) fn value(&self, type_oid: u32, format: i16, bytes: &[u8]) -> Datum {
        if bytes.len() > LONGEST {
            return self.hash(bytes);
        }
        let datum = if format == 0 { value::text(bytes) } else { value::binary(type_oid, bytes) };
        match &datum {
            Datum::Text(text) if self.redact && !is_kept(type_oid, text) => self.hash(text.as_bytes()),
            Datum::Hex { .. } if self.redact => self.hash(bytes),
            _ => datum,
        }
    }

    /// A text of SQL, and its comment.
    pub(crate) fn sql(&self, bytes: &[u8]) -> (String, Option<String>) {
        let sql = String::from_utf8_lossy(bytes);
        let (text, comment) = sql::split_comment(&sql);
        if sql::may_hold_password(&text) {
            return (sql::with_literals(&text, true, |_| "***".to_owned()), None);
        }
        if !self.redact {
            return (text, comment);
        }
        let literal = |literal: &str| {
            if looks_harmless(literal) {
                literal.to_owned()
            } else {
                format!("#{}", self.digits(literal.as_bytes()))
            }
        };
        (sql::with_literals(&text, true, literal), comment.and_then(|comment| traceparent(&comment)))
    }

    /// The message of an error.
    pub(crate) fn message(&self, bytes: &[u8]) -> String {
        if self.redact { String::new() } else { String::from_utf8_lossy(bytes).into_owned() }
    }

    fn hash(&self, bytes: &[u8]) -> Datum {
        Datum::Hash { hash: self.digits(bytes), bytes: bytes.len() as u64 }
    }

    /// 64 bits of a keyed hash: enough to tell the values of a capture apart.
    fn digits(&self, bytes: &[u8]) -> String {
        value::hex(&hmac::sign(&self.key, bytes).as_ref()[..8])
    }
}

/// True if a value of this type stays in a redacted capture.
fn is_kept(type_oid: u32, text: &str) -> bool {
    match type_oid {
        oid::BOOL
        | oid::INT2
        | oid::INT4
        | oid::INT8
        | oid::OID
        | oid::XID
        | oid::FLOAT4
        | oid::FLOAT8
        | oid::NUMERIC
        | oid::DATE
        | oid::TIME
        | oid::TIMETZ
        | oid::TIMESTAMP
        | oid::TIMESTAMPTZ
        | oid::INTERVAL
        | oid::UUID
        | oid::VOID
        // Arrays of these.
        | 1000 | 1005 | 1007 | 1016 | 1021 | 1022 | 1028 | 1115 | 1182 | 1185 | 1231 | 2951 => true,
        0 | oid::UNKNOWN => looks_harmless(text),
        _ => false,
    }
}

/// True for what is a number, a truth value, a date or a UUID by its looks, if the type isn't known. A
/// number with leading zeros isn't one: telephone numbers and post codes look so.
fn looks_harmless(text: &str) -> bool {
    let digits =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| {
        let text = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let all = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        all(whole) && all(fraction) && (whole.len() == 1 || !whole.starts_with('0'))
    };
    let time = |text: &str| {
        text.is_ascii()
            && text.len() >= 10
            && digits(&text[..4], 4)
            && digits(&text[5..7], 2)
            && digits(&text[8..10], 2)
            && [&text[4..5], &text[7..8]] == ["-", "-"]
            && text.bytes().all(|byte| byte.is_ascii_digit() || b"-: .+TZ".contains(&byte))
    };
    let uuid =
        |text: &str| text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    matches!(text, "" | "t" | "f" | "true" | "false") || number(text) || time(text) || uuid(text)
}

/// The W3C trace context in a comment, which says which statements belong to one request.
fn traceparent(comment: &str) -> Option<String> {
    let rest = &comment[comment.find("traceparent=")? + "traceparent=".len()..];
    let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    let value = rest.trim_start_matches(['\'', '"']).split(|letter| !is_part(letter)).next()?;
    (!value.is_empty()).then(|| format!("/*traceparent='{value}'*/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(redact: bool) -> Policy {
        Policy::new(redact).expect("random numbers")
    }

    #[test]
    fn long_values_become_hashes() {
        let policy = policy(false);
        assert_eq!(policy.value(oid::TEXT, 0, b"a"), Datum::Text("a".to_owned()));
        let long = vec![b'x'; LONGEST + 1];
        let Datum::Hash { hash, bytes } = policy.value(oid::TEXT, 0, &long) else { panic!("a hash") };
        assert_eq!((hash.len(), bytes), (16, 1025));
        assert_eq!(policy.value(oid::TEXT, 1, &long), policy.value(oid::TEXT, 0, &long));
    }

    #[test]
    fn redaction_keeps_what_is_no_text() {
        let policy = policy(true);
        let is_hash =
            |type_oid, text: &str| matches!(policy.value(type_oid, 0, text.as_bytes()), Datum::Hash { .. });
        for (type_oid, text, hashed) in [
            (oid::INT4, "7", false),
            (oid::TEXT, "7", true),
            (oid::VARCHAR, "Ada", true),
            (0, "7", false),
            (0, "-1.50", false),
            (0, "0049301234", true),
            (0, "Ada", true),
            (0, "2026-11-26 10:00:00+00", false),
            (0, "2026-11-26T10:00:00Z", false),
            (0, "ääääää", true),
            (0, "00010203-0405-0607-0809-0a0b0c0d0e0f", false),
            (oid::JSONB, "{}", true),
            (1007, "{1,2}", false),
            (1009, "{a}", true),
            (600, "(1,2)", true),
        ] {
            assert_eq!(is_hash(type_oid, text), hashed, "{type_oid} {text}");
        }
        assert!(matches!(policy.value(600, 1, b"x"), Datum::Hash { .. }));
        assert_eq!(policy.value(oid::TEXT, 1, b"Ada"), policy.value(oid::TEXT, 0, b"Ada"));
        assert_eq!(policy.message(b"duplicate key (mail)=(ada@example.org)"), "");
    }

    #[test]
    fn redaction_hashes_literals_and_keeps_the_trace() {
        let (sql, comment) = policy(true).sql(
            b"SELECT 'Ada', '7' /* of Ada */ FROM t WHERE a = 5 /*action='x',traceparent='00-ab-cd-01'*/",
        );
        assert!(
            !sql.contains("Ada") && sql.contains("'7'") && sql.contains("a = 5") && sql.contains("'#"),
            "{sql}"
        );
        assert_eq!(comment.as_deref(), Some("/*traceparent='00-ab-cd-01'*/"));
        let (sql, comment) = policy(false).sql(b"/* a */ SELECT 'Ada'");
        assert_eq!((sql.as_str(), comment.as_deref()), ("SELECT 'Ada'", Some("/* a */")));
    }

    #[test]
    fn passwords_are_never_kept() {
        for redact in [false, true] {
            let (sql, comment) = policy(redact).sql(b"ALTER USER a PASSWORD 'x' /* x */");
            assert_eq!((sql.as_str(), comment), ("ALTER USER a PASSWORD '***'", None));
        }
    }

    #[test]
    fn two_runs_have_different_hashes() {
        assert_ne!(policy(true).value(oid::TEXT, 0, b"a"), policy(true).value(oid::TEXT, 0, b"a"));
    }
}
