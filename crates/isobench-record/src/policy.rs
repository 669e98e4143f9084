//! What of texts and values is kept.

use std::collections::BTreeMap;

use isobench_capture::Datum;
use isobench_script::lexer::{Kind, Token, certain_tokens};
use ring::hmac;
use ring::rand::SystemRandom;

use crate::reading::Reading;
use crate::secret::{self, HIDDEN};
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

    /// A parameter or a value of a result, in its format: 0 text, 1 binary. `secret` if it belongs to a
    /// statement that may hold a password.
    pub(crate) fn value(&self, type_oid: u32, format: i16, bytes: &[u8], secret: bool) -> Datum {
        if bytes.len() > LONGEST {
            return self.hash(bytes);
        }
        let hides = self.redact || secret;
        let datum = if format == 0 { value::text(bytes) } else { value::binary(type_oid, bytes) };
        match &datum {
            Datum::Text(text) if hides && !is_kept(type_oid, text) || secret::value_may_hold(text) => {
                self.hash(text.as_bytes())
            }
            Datum::Hex { .. } if hides => self.hash(bytes),
            _ => datum,
        }
    }

    /// A text of SQL.
    pub(crate) fn sql(&self, bytes: &[u8], reading: Reading) -> Kept {
        let sql = String::from_utf8_lossy(bytes);
        let read = reading.sees_marks(bytes).then(|| certain_tokens(&sql, reading.backslashes)).flatten();
        let Some(tokens) = read else {
            let secret = secret::unread_may_hold(&sql);
            if secret || self.redact {
                let text = format!("UNREADABLE #{}", self.digits(bytes));
                return Kept { text, comment: None, secret };
            }
            let (text, comment) = sql::split_comment(&sql);
            return Kept { text, comment, secret };
        };
        if secret::may_hold(&tokens) {
            return Kept { text: hidden(&tokens), comment: None, secret: true };
        }
        let ((inner, semicolon), comment) = sql::split_tokens(&tokens);
        if !self.redact {
            let (text, comment) = sql::split_comment(&sql);
            return Kept { text, comment, secret: false };
        }
        let mut text = sql::with_literals(inner, true, |literal| self.literal(literal));
        if semicolon {
            text.push(';');
        }
        Kept { text, comment: comment.and_then(|comment| traceparent(&comment)), secret: false }
    }

    /// What is between the marks of a literal, redacted.
    fn literal(&self, literal: &Token<'_>) -> String {
        let inner = literal.literal().map_or("", |(_, inner, _)| inner);
        if looks_harmless(inner) {
            return inner.to_owned();
        }
        format!("#{}", self.digits(literal.value().as_deref().unwrap_or(inner).as_bytes()))
    }

    /// The message of an error. `secret` if its statement may hold a password.
    pub(crate) fn message(&self, bytes: &[u8], secret: bool) -> String {
        let message = String::from_utf8_lossy(bytes);
        if self.redact || secret || secret::value_may_hold(&message) {
            return String::new();
        }
        message.into_owned()
    }

    fn hash(&self, bytes: &[u8]) -> Datum {
        Datum::Hash { hash: self.digits(bytes), bytes: bytes.len() as u64 }
    }

    /// 64 bits of a keyed hash: enough to tell the values of a capture apart.
    fn digits(&self, bytes: &[u8]) -> String {
        value::hex(&hmac::sign(&self.key, bytes).as_ref()[..8])
    }
}

/// What is kept of a text of SQL.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) text: String,
    pub(crate) comment: Option<String>,
    /// True if it may hold a password: then nothing is kept of its values and errors.
    pub(crate) secret: bool,
}

/// A text that may hold a password, without what may be one.
fn hidden(tokens: &[Token<'_>]) -> String {
    let mut statements = Vec::new();
    for statement in tokens.split(|token| token.kind == Kind::Other && token.text == ";") {
        let words: Vec<Token<'_>> = secret::significant(statement).collect();
        statements.push(match secret::lead(&words) {
            Some(length) => {
                let lead = words.iter().take(length).map(|word| word.text).chain([HIDDEN]);
                lead.collect::<Vec<_>>().join(" ")
            }
            None => sql::with_literals(statement, true, |_| HIDDEN.to_owned()).trim().to_owned(),
        });
    }
    statements.join("; ").trim_end().to_owned()
}

/// Hides start-up parameters of a session: settings that aren't the server's own may be secrets.
pub(crate) fn hide_settings(parameters: &mut BTreeMap<String, String>) {
    for (name, value) in parameters.iter_mut() {
        if name == "options" {
            *value = options(value);
        }
        if name.contains('.') || secret::value_may_hold(value) {
            HIDDEN.clone_into(value);
        }
    }
}

/// The settings in `options` of the start-up, without the values of those that aren't the server's own
/// (`-c my.x=y`).
fn options(text: &str) -> String {
    let own = |word: &str| {
        let setting = word.trim_start_matches("-c").trim_start_matches('-');
        setting.split_once('=').is_none_or(|(name, _)| !name.contains('.'))
    };
    let mut words = Vec::new();
    // A backslash makes a blank a part of a value.
    let mut escaped = false;
    for word in text.split(' ') {
        let goes_on = std::mem::replace(&mut escaped, word.ends_with('\\'));
        match words.last_mut() {
            Some(last) if goes_on && *last == HIDDEN => {}
            _ if own(word) => words.push(word),
            _ => words.push(HIDDEN),
        }
    }
    words.join(" ")
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
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    (lengths == [2, 32, 16, 2]).then(|| format!("/*traceparent='{value}'*/"))
}

#[cfg(test)]
mod tests {
    use isobench_script::lexer::Backslashes;

    use super::*;

    fn policy(redact: bool) -> Policy {
        Policy::new(redact).expect("random numbers")
    }

    #[test]
    fn long_values_become_hashes() {
        let policy = policy(false);
        assert_eq!(policy.value(oid::TEXT, 0, b"a", false), Datum::Text("a".to_owned()));
        let long = vec![b'x'; LONGEST + 1];
        let Datum::Hash { hash, bytes } = policy.value(oid::TEXT, 0, &long, false) else { panic!("a hash") };
        assert_eq!((hash.len(), bytes), (16, 1025));
        assert_eq!(policy.value(oid::TEXT, 1, &long, false), policy.value(oid::TEXT, 0, &long, false));
    }

    #[test]
    fn redaction_keeps_what_is_no_text() {
        let policy = policy(true);
        let is_hash = |type_oid, text: &str| {
            matches!(policy.value(type_oid, 0, text.as_bytes(), false), Datum::Hash { .. })
        };
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
        assert!(matches!(policy.value(600, 1, b"x", false), Datum::Hash { .. }));
        assert_eq!(policy.value(oid::TEXT, 1, b"Ada", false), policy.value(oid::TEXT, 0, b"Ada", false));
        assert_eq!(policy.message(b"duplicate key (mail)=(ada@example.org)", false), "");
    }

    /// What is kept of a text at a server with the usual settings.
    fn kept(policy: &Policy, sql: &str) -> Kept {
        policy.sql(sql.as_bytes(), Reading { backslashes: Some(Backslashes::Plain), mixes_bytes: false })
    }

    #[test]
    fn redaction_hashes_literals_and_keeps_the_trace() {
        let trace = "traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'";
        let text = format!("SELECT 'Ada', '7' /* of Ada */ FROM t WHERE a = 5 /*action='x',{trace}*/");
        let Kept { text: sql, comment, secret } = kept(&policy(true), &text);
        assert!(
            !sql.contains("Ada") && sql.contains("'7'") && sql.contains("a = 5") && sql.contains("'#"),
            "{sql}"
        );
        assert_eq!((comment, secret), (Some(format!("/*{trace}*/")), false));
        let plain = kept(&policy(false), "/* a */ SELECT 'Ada'");
        assert_eq!((plain.text.as_str(), plain.comment.as_deref()), ("SELECT 'Ada'", Some("/* a */")));
        assert_eq!(kept(&policy(true), "SELECT 1 /*traceparent='5551234'*/").comment, None);
    }

    #[test]
    fn passwords_are_never_kept() {
        for redact in [false, true] {
            for (sql, expected) in [
                ("ALTER /* y */ USER a PASSWORD 'x' /* x */", "ALTER USER ***"),
                (
                    "SELECT 1; create user \"x\" password x; SELECT 'x'",
                    "SELECT 1; create user ***; SELECT '***'",
                ),
                ("SELECT dblink('password=x', $$x$$) -- x", "SELECT dblink('***', $$***$$)"),
                ("SET SESSION my.y = x", "SET SESSION my . y ***"),
                ("DO $$x$$;", "DO ***;"),
            ] {
                let kept = kept(&policy(redact), sql);
                assert_eq!(kept, Kept { text: expected.to_owned(), comment: None, secret: true }, "{sql}");
            }
        }
        let policy = policy(false);
        assert_eq!(policy.message(b"unterminated \"'x\"", true), "");
        assert_eq!(policy.message(b"could not connect to host=a password=x", false), "");
        assert!(matches!(policy.value(oid::TEXT, 0, b"x", true), Datum::Hash { .. }));
        assert!(matches!(policy.value(oid::TEXT, 0, b"host=a password=x", false), Datum::Hash { .. }));
        assert!(matches!(policy.value(oid::INT4, 0, b"7", true), Datum::Text(_)));
    }

    #[test]
    fn what_cannot_be_read_with_certainty_is_hashed_as_a_whole() {
        let (plain, redacts) = (policy(false), policy(true));
        let unknown = Reading::LOGGED;
        let mixed = Reading { backslashes: Some(Backslashes::Plain), mixes_bytes: true };
        for (sql, reading) in [
            (&b"SELECT 'it\\'s', 'x'"[..], unknown),
            (b"SELECT 'x", unknown),
            (b"SELECT '\x83\\', 'x'", mixed),
        ] {
            let hashed = redacts.sql(sql, reading);
            assert!(hashed.text.starts_with("UNREADABLE #") && !hashed.text.contains('x'), "{hashed:?}");
            assert!(plain.sql(sql, reading).text.contains('x'), "what holds no password stays");
        }
        let hashed = plain.sql(b"ALTER USER a PASSWORD 'x", unknown);
        assert!(hashed.secret && hashed.text.starts_with("UNREADABLE #"), "{hashed:?}");
    }

    #[test]
    fn settings_of_the_start_that_are_not_the_servers_own_are_hidden() {
        let pairs = [
            ("user", "ada"),
            ("my.y", "x"),
            ("options", "-c my.y=x\\ x -cmy.z=x --my.u=x -c default_transaction_isolation=repeatable\\ read"),
        ];
        let mut parameters =
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        hide_settings(&mut parameters);
        let values: Vec<&str> = parameters.values().map(String::as_str).collect();
        assert_eq!(
            values,
            ["***", "-c *** *** *** -c default_transaction_isolation=repeatable\\ read", "ada"]
        );
    }

    #[test]
    fn two_runs_have_different_hashes() {
        assert_ne!(
            policy(true).value(oid::TEXT, 0, b"a", false),
            policy(true).value(oid::TEXT, 0, b"a", false)
        );
    }
}
