//! What a command answers: its exit status, the status of HTTP, and its output, of which what differs
//! between two runs of the same order says nothing.

use std::collections::BTreeSet;

/// The mark of `curl`'s status in its output.
const MARK: &str = "[HTTP ";

/// The same if no server answered.
const UNANSWERED: &str = "[HTTP 000";

/// The format by which `curl` is asked for it.
pub(crate) const CURL_FORMAT: &str = r"\n[HTTP %{http_code} %{redirect_url}]";

/// The least length of a text of letters and digits that is a token.
const TOKEN: usize = 24;

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status; 128 and the signal's number if a signal ended it.
    pub exit: i32,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Answer {
    /// The status of HTTP, if the command is a `curl` that got one.
    pub fn http(&self) -> Option<u16> {
        let at = self.output.rfind(MARK)? + MARK.len();
        let status: u16 = self.output.get(at..at + 3)?.parse().ok()?;
        (status > 0).then_some(status)
    }

    /// True if the user sees a failure: a status of HTTP from 400 on, or an exit status other than 0.
    pub fn failed(&self) -> bool {
        self.http().map_or(self.exit != 0, |status| status >= 400)
    }

    /// True if the failure is no answer that an application gives on purpose: from 500 on, or an exit
    /// status.
    pub(crate) fn is_error(&self) -> bool {
        self.http().map_or(self.exit != 0, |status| status >= 500)
    }

    /// Its status in words.
    pub fn status(&self) -> String {
        match self.http() {
            Some(status) => format!("HTTP {status}"),
            None => format!("exit {}", self.exit),
        }
    }

    /// Its output without the mark of `curl`, in one line.
    pub fn shown(&self) -> String {
        let text = match self.output.rfind(MARK) {
            Some(at) if self.http().is_some() || self.output[at..].starts_with(UNANSWERED) => {
                &self.output[..at]
            }
            _ => &self.output,
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A place in an output: the command, and the two words before.
type Place = (usize, Vec<String>);

/// Outputs compared with each other: places that differ between two runs of the same order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    places: BTreeSet<Place>,
    /// Commands whose output has the same words in another order.
    unordered: BTreeSet<usize>,
    /// Commands whose output differs as a whole.
    whole: BTreeSet<usize>,
}

impl Answers {
    /// Learns from two runs of the same order.
    pub(crate) fn learn(&mut self, command: usize, one: &Answer, other: &Answer) {
        let (left, right) = (words(command, &one.output), words(command, &other.output));
        if left.len() != right.len() {
            self.whole.insert(command);
            return;
        }
        let (mut one, mut other) = (self.kept(&left), self.kept(&right));
        if one != other {
            one.sort();
            other.sort();
            if one == other {
                self.unordered.insert(command);
                return;
            }
        }
        let differing = left.into_iter().zip(right).filter(|(one, other)| one.1 != other.1);
        self.places.extend(differing.map(|(one, _)| one.0));
    }

    /// The output without what says nothing.
    pub(crate) fn canonical(&self, command: usize, answer: &Answer) -> String {
        if self.whole.contains(&command) {
            return String::new();
        }
        let mut kept = self.kept(&words(command, &answer.output));
        if self.unordered.contains(&command) {
            kept.sort();
        }
        kept.join(" ")
    }

    /// The words, without those at places that say nothing.
    fn kept(&self, words: &[(Place, String)]) -> Vec<String> {
        let one = |(place, word): &(Place, String)| {
            if self.places.contains(place) { "*".to_owned() } else { word.clone() }
        };
        words.iter().map(one).collect()
    }

    /// The commands whose output isn't compared.
    pub(crate) fn whole(&self) -> impl Iterator<Item = usize> {
        self.whole.iter().copied()
    }
}

/// A text with the names of JSON's objects in one order: by the standard it says nothing.
/// Source: RFC 8259, "Objects".
fn in_order(text: &str) -> String {
    let (body, mark) = text.split_at(text.rfind(MARK).unwrap_or(text.len()));
    match serde_json::from_str::<serde_json::Value>(body) {
        Ok(mut value @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => {
            value.sort_all_objects();
            format!("{value} {mark}")
        }
        _ => text.to_owned(),
    }
}

/// The words of a text, each with the two words before it that begin with a letter.
fn words(command: usize, text: &str) -> Vec<(Place, String)> {
    let all = split(&in_order(text));
    let begins = |word: &&String| word.chars().next().is_some_and(char::is_alphabetic);
    let place = |at: usize| {
        let before = &all[at.saturating_sub(6)..at];
        let mut context: Vec<String> = before.iter().rev().filter(begins).take(2).cloned().collect();
        context.reverse();
        (command, context)
    };
    (0..all.len()).map(|at| (place(at), all[at].clone())).collect()
}

/// Words, and single signs. Instants, UUIDs and tokens are all the same word, whatever they are.
fn split(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split_whitespace() {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            if let Some(length) = always(rest) {
                found.push("…".to_owned());
                rest = &rest[length..];
                continue;
            }
            let in_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if in_word(first) {
                rest.find(|c| !in_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            found.push(rest[..length].to_owned());
            rest = &rest[length..];
        }
    }
    found
}

/// The length of what never says anything, at the start of a text.
fn always(text: &str) -> Option<usize> {
    uuid(text).or_else(|| instant(text)).or_else(|| duration(text)).or_else(|| token(text))
}

/// A text by a pattern, in which `0` is a digit, `x` a hexadecimal one.
fn matches(text: &str, pattern: &str) -> bool {
    let fits = |(byte, sign): (u8, u8)| match sign {
        b'0' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        b'T' => byte == b'T' || byte == b' ',
        sign => byte == sign,
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

fn uuid(text: &str) -> Option<usize> {
    const PATTERN: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    matches(text, PATTERN).then_some(PATTERN.len())
}

/// An instant in the form of ISO 8601, or the date of one; or the time of it, which psql prints after a
/// blank.
fn instant(text: &str) -> Option<usize> {
    let rest = |from: usize| {
        let more = |c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z'));
        from + text[from..].find(more).unwrap_or(text.len() - from)
    };
    if matches(text, "0000-00-00T00:00") {
        return Some(rest("0000-00-00T00:00".len()));
    }
    matches(text, "00:00:00").then(|| rest("00:00:00".len()))
}

/// The time that something took, as test runners print it: `0.85s`, `12ms`. Whole seconds may be what was
/// asked for.
fn duration(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let end = text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| from + length);
        (end > from).then_some(end)
    };
    let whole = digits(0)?;
    let fraction = text[whole..].starts_with('.').then(|| digits(whole + 1)).flatten();
    let number = fraction.unwrap_or(whole);
    let units: &[&str] =
        if fraction.is_some() { &["s", "ms", "µs", "us", "ns"] } else { &["ms", "µs", "us", "ns"] };
    let after = |unit: &&&str| {
        let rest = text[number..].strip_prefix(**unit);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    units.iter().find(after).map(|unit| number + unit.len())
}

/// A long text of letters and digits with at least one digit, such as the token of a session.
fn token(text: &str) -> Option<usize> {
    let in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '=' | '-');
    let length = text.find(|c| !in_token(c)).unwrap_or(text.len());
    (length >= TOKEN && text[..length].bytes().any(|byte| byte.is_ascii_digit())).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(output: &str) -> Answer {
        Answer { output: output.to_owned(), ..Answer::default() }
    }

    #[test]
    fn a_status_of_http_counts_more_than_that_of_curl() {
        let found = answer("{}\n[HTTP 409 ]");
        assert!(found.http() == Some(409) && found.failed() && !found.is_error() && found.shown() == "{}");
        assert!(answer("[HTTP 503 ]").is_error());
        let unreachable = Answer { exit: 7, ..answer("[HTTP 000 ]") };
        assert!(unreachable.http().is_none() && unreachable.is_error() && unreachable.status() == "exit 7");
        assert_eq!(unreachable.shown(), "");
        assert!(!answer("[HTTP 302 /x]").failed());
    }

    #[test]
    fn numbers_that_differ_between_two_runs_are_left_out_where_they_stand() {
        let mut answers = Answers::default();
        answers.learn(0, &answer(r#"{"id": 7, "left": 4}"#), &answer(r#"{"id": 1007, "left": 4}"#));
        let canonical = |text: &str| answers.canonical(0, &answer(text));
        assert_eq!(canonical(r#"{"id": 9, "left": 4}"#), canonical(r#"{"id": 12, "left": 4}"#));
        assert_ne!(canonical(r#"{"id": 9, "left": 4}"#), canonical(r#"{"id": 9, "left": 3}"#));
        assert_eq!(answers.canonical(1, &answer("id 9")), "id 9", "another command");
    }

    #[test]
    fn the_order_of_names_in_json_says_nothing() {
        let answers = Answers::default();
        let canonical = |text: &str| answers.canonical(0, &answer(text));
        let (one, other) =
            (r#"{"left": 4, "of": {"b": 1, "a": 2}}"#, r#"{"of": {"a": 2, "b": 1}, "left": 4}"#);
        assert_eq!(canonical(&format!("{one}\n[HTTP 200 ]")), canonical(&format!("{other}\n[HTTP 200 ]")));
        assert_ne!(canonical(r#"{"a": 1, "b": 2}"#), canonical(r#"{"a": 2, "b": 1}"#));
        assert_ne!(canonical("[1, 2]"), canonical("[2, 1]"), "a list has an order");
    }

    #[test]
    fn words_in_another_order_count_without_it() {
        let mut answers = Answers::default();
        answers.learn(0, &answer("late, sold out"), &answer("sold out, late"));
        let canonical = |text: &str| answers.canonical(0, &answer(text));
        assert_eq!(canonical("out late, sold"), canonical("late, sold out"));
        assert_ne!(canonical("late, sold in"), canonical("late, sold out"));
    }

    #[test]
    fn outputs_of_another_length_are_not_compared() {
        let mut answers = Answers::default();
        answers.learn(0, &answer("a b"), &answer("a b c"));
        assert_eq!(answers.canonical(0, &answer("x")), answers.canonical(0, &answer("y")));
        assert_eq!(answers.whole().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn instants_uuids_and_tokens_say_nothing() {
        let answers = Answers::default();
        let canonical = |text: &str| answers.canonical(0, &answer(text));
        for (one, other) in [
            ("at 2026-11-29T05:50:00Z", "at 2027-01-01T00:00:00.5Z"),
            ("id 5f0c7f1e-9d3b-4a57-8f7e-0d1f2a3b4c5d", "id 00000000-0000-0000-0000-000000000000"),
            ("t=abcdefghijklmnopqrstuvwx1", "t=ABCDEFGHIJKLMNOPQRSTUVWX2"),
            ("1 passed in 0.85s", "1 passed in 11.02s"),
            ("ok (5ms), 1.5ms", "ok (17ms), 0.25ms"),
        ] {
            assert_eq!(canonical(one), canonical(other), "{one}");
        }
        for (one, other) in
            [("2026-11-29", "2026-11-30"), ("wait 5s", "wait 6s"), ("1.5sm", "1.6sm"), ("1.5", "1.6")]
        {
            assert_ne!(canonical(one), canonical(other), "{one} may be what was asked for");
        }
    }
}
