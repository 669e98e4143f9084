//! What a command was asked and what it found, for gates of continuous integration: `JUnit` and SARIF.
//!
//! | module | what |
//! |---|---|
//! | `junit` | a test for each question |
//! | `sarif` | a result for each finding |
//! | `tried` | the questions of scripts that were tried against each other |
//! | `measured` | the questions of a comparison: promises and requirements |
//!
//! A question without a finding isn't an answer that something is safe: [`Answer::Nothing`] says how far
//! it goes. Not here: files (the program), and what was found (its crates).

mod junit;
mod measured;
mod sarif;
mod tried;

use std::borrow::Cow;

pub use junit::{JUNIT_START, junit};
pub use measured::of_document;
pub use sarif::{SARIF_SCHEMA, Uri, sarif};
pub use tried::{of_tried, wrong_outcome};

/// A question to which a command has an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What was asked: a level and scripts, commands, or a requirement.
    pub name: String,
    /// The time that the answer took.
    pub seconds: f64,
    /// The answer.
    pub answer: Answer,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Nothing is wrong as far as this sentence says.
    Nothing(String),
    /// These are wrong, or not proved where a proof is asked for; the gravest first.
    Wrong(Vec<Finding>),
    /// Not decided.
    Open(Finding),
    /// The question couldn't be asked, and why.
    Failed(String),
}

/// Something that is wrong, or that isn't decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing it is.
    pub rule: Rule,
    /// How sure it is.
    pub severity: Severity,
    /// It in a line.
    pub message: String,
    /// What happens, a line each.
    pub witness: Vec<String>,
    /// Where: the first one is where it goes wrong.
    pub places: Vec<Place>,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It was shown.
    Error,
    /// It follows from theory, and wasn't shown.
    Warning,
    /// It isn't decided.
    Note,
}

/// A kind of findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name: small letters, digits and hyphens.
    pub id: Cow<'static, str>,
    /// It in a sentence.
    pub title: Cow<'static, str>,
}

/// A place of a script, or of something that has no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the script, as it was given; another name if there is no script.
    pub name: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// What stands there; may be empty.
    pub text: String,
}

impl Rule {
    /// The tables end as no serial order leaves them.
    pub const WRONG_STATE: Rule = Rule::new("wrong-state", "The tables end as no serial order leaves them.");
    /// An answer that no serial order gives.
    pub const WRONG_ANSWER: Rule =
        Rule::new("wrong-answer", "A transaction or command gets an answer that no serial order gives.");
    /// A command failed in part.
    pub const PARTIAL: Rule = Rule::new("partial", "A command failed, but some of its rows stay.");
    /// What is read in a transaction and written in a later one.
    pub const BETWEEN_TRANSACTIONS: Rule = Rule::new(
        "between-transactions",
        "A transaction writes what an earlier one read: no level protects that.",
    );
    /// A level that isn't enough by theory.
    pub const NOT_ENOUGH: Rule =
        Rule::new("not-enough", "By theory the level isn't enough. Trying didn't show it.");
    /// A requirement that isn't met.
    pub const REQUIREMENT: Rule = Rule::new("requirement", "A requirement isn't met.");
    /// An invariant that doesn't hold.
    pub const INVARIANT: Rule = Rule::new("invariant", "An invariant doesn't hold that the level promises.");
    /// Commits that are lost.
    pub const LOST_COMMITS: Rule =
        Rule::new("lost-commits", "Commits are lost that the settings promise to keep.");
    /// What isn't decided.
    pub const UNDECIDED: Rule =
        Rule::new("undecided", "Nothing wrong was found, and nothing is proved: something wasn't looked at.");

    const fn new(id: &'static str, title: &'static str) -> Rule {
        Rule { id: Cow::Borrowed(id), title: Cow::Borrowed(title) }
    }

    /// A rule with the name of an anomaly, such as "write skew".
    pub fn of_anomaly(name: &str, title: String) -> Rule {
        let letters = name.to_lowercase();
        let words = letters.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let id = words.collect::<Vec<_>>().join("-");
        Rule {
            id: Cow::Owned(if id.is_empty() { "anomaly".to_owned() } else { id }),
            title: Cow::Owned(title),
        }
    }
}

impl Place {
    /// A script as a whole, or something without a script.
    pub fn of(name: impl Into<String>) -> Place {
        Place { name: name.into(), line: None, text: String::new() }
    }

    /// The place that a text such as `pay.sql:7` or `pay.sql:7: SELECT 1` begins with, with its statement.
    pub fn read(text: &str) -> Place {
        let (place, statement) = text.split_once(": ").unwrap_or((text, ""));
        match place.rsplit_once(':').map(|(name, line)| (name, line.parse())) {
            Some((name, Ok(line))) => {
                Place { name: name.to_owned(), line: Some(line), text: statement.to_owned() }
            }
            _ => Place::of(text),
        }
    }
}

impl Finding {
    /// What isn't decided, and why; about a script, or something that has no file.
    pub fn undecided(name: &str, why: impl Into<String>) -> Finding {
        Finding {
            rule: Rule::UNDECIDED,
            severity: Severity::Note,
            message: why.into(),
            witness: Vec::new(),
            places: vec![Place::of(name)],
        }
    }

    fn map(self, fit: &dyn Fn(&str) -> String) -> Finding {
        let place = |Place { name, line, text }: Place| Place { name: fit(&name), line, text: fit(&text) };
        let Rule { id, title } = self.rule;
        Finding {
            rule: Rule { id, title: Cow::Owned(fit(&title)) },
            severity: self.severity,
            message: fit(&self.message),
            witness: self.witness.iter().map(|line| fit(line)).collect(),
            places: self.places.into_iter().map(place).collect(),
        }
    }
}

impl Question {
    /// The same with other texts: without passwords, for example. Formats escape them only afterwards.
    #[must_use]
    pub fn map(self, fit: &dyn Fn(&str) -> String) -> Question {
        let answer = match self.answer {
            Answer::Nothing(text) => Answer::Nothing(fit(&text)),
            Answer::Failed(text) => Answer::Failed(fit(&text)),
            Answer::Open(finding) => Answer::Open(finding.map(fit)),
            Answer::Wrong(all) => Answer::Wrong(all.into_iter().map(|one| one.map(fit)).collect()),
        };
        Question { name: fit(&self.name), seconds: self.seconds, answer }
    }
}

/// A text in one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_reasons_have_them() {
        let place =
            |name: &str, line, text: &str| Place { name: name.to_owned(), line, text: text.to_owned() };
        for (text, expected) in [
            ("a/pay.sql:7", place("a/pay.sql", Some(7), "")),
            ("pay.sql:7: SELECT 1: 2", place("pay.sql", Some(7), "SELECT 1: 2")),
            ("orders", place("orders", None, "")),
            ("c:x", place("c:x", None, "")),
        ] {
            assert_eq!(Place::read(text), expected, "{text}");
        }
    }

    #[test]
    fn rules_have_names_that_every_service_takes() {
        for (name, id) in [("write skew", "write-skew"), ("G2-item", "g2-item"), ("…", "anomaly")] {
            assert_eq!(Rule::of_anomaly(name, String::new()).id, id);
        }
    }
}
