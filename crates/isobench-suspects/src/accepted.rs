//! The file of accepted suspects: the kinds of transactions and the pairs of them that somebody has looked at.
//! Whatever isn't in it is new.
//!
//! A kind is known by its level and by its statements without values. One that has changed is another one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::between::Carried;
use crate::judged::Judged;
use crate::live::Live;
use crate::script;
use crate::suspect::Kind;
use crate::template::Template;
use crate::words::deeds;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line of the file.
pub const ACCEPTED_START: &str = "# Suspects that are accepted, by isobench race CAPTURE --write.";

/// What the first lines say further.
const HINT: &str = "# Each is a pair of kinds of transactions. Remove a pair, and --check names it again.";

/// Accepted suspects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The version of the format.
    version: u32,
    /// The pairs.
    #[serde(default)]
    pairs: Vec<Pair>,
    /// The kinds of transactions, by a name in this file.
    #[serde(default)]
    kinds: BTreeMap<String, Transactions>,
}

/// A pair that can race, or a read of one transaction and a write of a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// What can go wrong.
    problem: Kind,
    /// The table that is read, and changed by the other one.
    table: String,
    /// The kinds: that which goes wrong and the other one, or that which reads and that which writes.
    kinds: [String; 2],
    /// True if a value is carried from one transaction to a later one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    between: bool,
}

/// A kind of transactions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transactions {
    /// What it does; only for people.
    does: String,
    /// The level at which it ran.
    level: String,
    /// Its statements, without values.
    statements: Vec<String>,
}

/// The file can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedError {
    /// It isn't such a file.
    Form(String),
    /// It is of another version.
    Version(i64),
    /// A pair names a kind that the file hasn't.
    NoKind(String),
}

impl fmt::Display for AcceptedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptedError::Form(why) => write!(
                f,
                "it isn't a file of accepted suspects, which isobench race CAPTURE --write makes: {}",
                why.trim_end()
            ),
            AcceptedError::Version(version) => write!(
                f,
                "the file has version {version}, but this program knows {VERSION}; write it again with --write"
            ),
            AcceptedError::NoKind(name) => {
                write!(f, "a pair names {name}, but there is no [kinds.{name}]")
            }
        }
    }
}

impl std::error::Error for AcceptedError {}

/// What is left of suspects without those that are accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unaccepted {
    /// How many pairs were left out, because they are accepted.
    pub accepted: usize,
    /// How often transactions of these pairs have raced while they were recorded.
    pub live: usize,
    /// The kinds of transactions in the others, each with why it isn't accepted.
    pub kinds: Vec<Unknown>,
}

/// A kind of transactions that isn't accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// What it does.
    pub does: String,
    /// The line of the capture with its first statement.
    pub line: u64,
    /// Why it isn't accepted.
    pub why: Why,
}

/// Why a kind isn't accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The file has no such kind.
    New,
    /// The file has one that does the same by other statements, or at another level.
    Changed,
    /// The file has it, but not in this pair.
    Pair,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::New => "new",
            Why::Changed => "changed since it was accepted",
            Why::Pair => "accepted in other pairs",
        })
    }
}

impl Transactions {
    fn of(template: &Template) -> Transactions {
        Transactions {
            does: deeds(template).unwrap_or_else(|| script::name(template)),
            level: template.level.name().to_owned(),
            statements: template.statements.iter().map(|step| step.normal.key.clone()).collect(),
        }
    }

    /// True if both are one kind, whatever they are called.
    fn is(&self, other: &Transactions) -> bool {
        (&self.level, &self.statements) == (&other.level, &other.statements)
    }
}

impl Accepted {
    /// Accepts what was found.
    pub fn of(templates: &[Template], judged: &Judged, carried: &[Carried]) -> Accepted {
        let mut kinds: BTreeMap<usize, Transactions> = BTreeMap::new();
        let mut name = |number: usize| {
            kinds.entry(number).or_insert_with(|| Transactions::of(&templates[number]));
            format!("t{number}")
        };
        let mut pairs: Vec<Pair> = Vec::new();
        let suspects =
            judged.suspects.iter().map(|one| (one.kind, &one.read_table, [one.split, one.within], false));
        let between = carried.iter().map(|one| (one.kind, &one.table, one.templates, true));
        for (problem, table, pair, between) in suspects.chain(between) {
            let one = Pair { problem, table: table.clone(), kinds: pair.map(&mut name), between };
            if !pairs.contains(&one) {
                pairs.push(one);
            }
        }
        let kinds = kinds.into_iter().map(|(number, kind)| (format!("t{number}"), kind)).collect();
        Accepted { version: VERSION, pairs, kinds }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It isn't such a file, or of another version; a pair names a kind that it hasn't.
    pub fn read(text: &str) -> Result<Accepted, AcceptedError> {
        let form = |error: toml::de::Error| AcceptedError::Form(error.to_string());
        let table: toml::Table = toml::from_str(text).map_err(form)?;
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(version) if version != i64::from(VERSION) => return Err(AcceptedError::Version(version)),
            _ => {}
        }
        let file: Accepted = toml::from_str(text).map_err(form)?;
        let mut names = file.pairs.iter().flat_map(|one| &one.kinds);
        match names.find(|name| !file.kinds.contains_key(*name)) {
            Some(name) => Err(AcceptedError::NoKind(name.clone())),
            None => Ok(file),
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        // Strings, numbers, lists and tables are all that it has.
        let body = toml::to_string_pretty(self).unwrap_or_default();
        format!("{ACCEPTED_START}\n{HINT}\n{body}")
    }

    /// The number of accepted pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// True if nothing is accepted.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Takes out what is accepted: suspects, what is carried, and what went wrong between accepted kinds.
    pub fn take_out(
        &self,
        templates: &[Template],
        judged: &mut Judged,
        carried: &mut Vec<Carried>,
        live: &mut Vec<Live>,
    ) -> Unaccepted {
        let all: Vec<Transactions> = templates.iter().map(Transactions::of).collect();
        let before = judged.suspects.len() + carried.len();
        let has = |kind: Kind, table: Option<&str>, pair: [usize; 2], between: bool| {
            self.pairs.iter().any(|one| {
                let same = |(name, number): (&String, usize)| self.kinds[name].is(&all[number]);
                one.problem == kind
                    && table.is_none_or(|table| one.table == table)
                    && one.between == between
                    && one.kinds.iter().zip(pair).all(same)
            })
        };
        judged.suspects.retain(|one| !has(one.kind, Some(&one.read_table), [one.split, one.within], false));
        carried.retain(|one| !has(one.kind, Some(&one.table), one.templates, true));
        let after = judged.suspects.len() + carried.len();
        let written = |one: &Live, number: usize| {
            let writes = |pair: &Pair| {
                pair.between && pair.problem == one.kind && self.kinds[&pair.kinds[1]].is(&all[number])
            };
            self.pairs.iter().any(writes)
        };
        let raced = live.len();
        live.retain(|one| {
            let [first, second] = [0, 1].map(|side| one.sides[side].template);
            !(has(one.kind, None, [second, first], false) || written(one, first) && written(one, second))
        });
        let left = judged.suspects.iter().flat_map(|one| [one.split, one.within]);
        let left = left.chain(carried.iter().flat_map(|one| one.templates));
        let mut numbers: Vec<usize> =
            left.chain(live.iter().flat_map(|one| [0, 1].map(|side| one.sides[side].template))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let unknown = |number: usize| {
            let own = &all[number];
            Unknown { does: own.does.clone(), line: templates[number].line, why: self.why(own, &all) }
        };
        Unaccepted {
            accepted: before - after,
            live: raced - live.len(),
            kinds: numbers.into_iter().map(unknown).collect(),
        }
    }

    /// Why a kind isn't accepted. One has changed if the file has one that does the same and isn't there any more.
    fn why(&self, own: &Transactions, all: &[Transactions]) -> Why {
        if self.kinds.values().any(|known| known.is(own)) {
            return Why::Pair;
        }
        let gone = |known: &&Transactions| !all.iter().any(|one| one.is(known));
        let changed = self.kinds.values().filter(gone).any(|known| known.does == own.does);
        if changed { Why::Changed } else { Why::New }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let kind = Transactions {
            does: "update item".to_owned(),
            level: "read committed".to_owned(),
            statements: vec!["SELECT \"stock\" FROM item WHERE id = ?".to_owned()],
        };
        let pair = Pair {
            problem: Kind::LostUpdate,
            table: "public.item".to_owned(),
            kinds: ["t0".to_owned(), "t0".to_owned()],
            between: false,
        };
        let kinds = BTreeMap::from([("t0".to_owned(), kind)]);
        let file = Accepted { version: VERSION, pairs: vec![pair], kinds };
        let text = file.text();
        assert!(text.starts_with(ACCEPTED_START) && text.contains("problem = \"lost-update\""), "{text}");
        assert_eq!(Accepted::read(&text), Ok(file));
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(Accepted::read("version = 7"), Err(AcceptedError::Version(7)));
        let form = |text: &str| matches!(Accepted::read(text), Err(AcceptedError::Form(_)));
        assert!(form("pairs = [[\"a\"]]") && form("version = 1\nother = 1\n") && form("="));
        let open =
            "version = 1\n[[pairs]]\nproblem = \"duplicate\"\ntable = \"t\"\nkinds = [\"t0\", \"t1\"]\n";
        assert_eq!(Accepted::read(open), Err(AcceptedError::NoKind("t0".to_owned())));
    }
}
