//! Which transactions run at which level: one level for all scripts, or one for each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::history::Mode;
use crate::level::{Level, UnknownLevel};

/// The modes of each script's transactions.
///
/// Source of the term: Vandevoort, Ketsman, Koch and Neven, "Allocating Isolation Levels to
/// Transactions in a Multiversion Setting", PODS 2023.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Allocation {
    /// The modes of scripts that have none of their own.
    pub rest: Mode,
    /// Scripts with modes of their own, in the order given.
    pub scripts: Vec<(String, Mode)>,
}

impl Serialize for Allocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.spec())
    }
}

impl<'de> Deserialize<'de> for Allocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Allocation, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Allocation {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Allocation".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// The text isn't an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationError {
    /// A part isn't `SCRIPT=LEVEL`.
    Form(String),
    /// A script has two levels.
    Twice(String),
    /// There is no level for the other scripts.
    NoRest,
    /// A level isn't known.
    Level(UnknownLevel),
    /// DEFERRABLE without what makes it matter.
    Deferrable(String),
}

/// What stands for all scripts that aren't named.
const REST: &str = "*";

/// Words after a level: what they ask for.
const READ_ONLY: &str = "ro";
const DEFERRABLE: &str = "deferrable";

impl Allocation {
    /// One level for all.
    pub const fn uniform(level: Level) -> Allocation {
        Allocation { rest: Mode::of(level), scripts: Vec::new() }
    }

    /// The modes of a script's transactions. A script is named as it was given, or by the name of its
    /// file, with or without the ending.
    pub fn of(&self, script: &str) -> Mode {
        let own = self.scripts.iter().find(|(name, _)| Allocation::is_called(script, name));
        own.map_or(self.rest, |(_, mode)| *mode)
    }

    /// True if a script may be called so: `sql/pay.sql` is also `pay.sql` and `pay`.
    pub fn is_called(script: &str, name: &str) -> bool {
        let file = script.rsplit('/').next().unwrap_or(script);
        let stem = file.strip_suffix(".sql").unwrap_or(file);
        [script, file, stem].contains(&name)
    }

    /// The level, if it is the same for all.
    pub fn level(&self) -> Option<Level> {
        (self.scripts.is_empty() && self.rest == Mode::of(self.rest.level)).then_some(self.rest.level)
    }

    /// The allocation within a sentence: "serializable for pay and close and read committed for the
    /// others".
    pub fn said(&self) -> String {
        let plain = |mode: Mode| mode.to_string().replace(',', "");
        let groups = self.groups().into_iter().map(|(mode, names)| {
            let names = match names.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                _ => names.concat(),
            };
            format!("{} for {names}", plain(mode))
        });
        let groups = groups.collect::<Vec<_>>().join(", ");
        if groups.is_empty() {
            return plain(self.rest);
        }
        format!("{groups} and {} for the others", plain(self.rest))
    }

    /// The names of the scripts with the same modes.
    fn groups(&self) -> Vec<(Mode, Vec<&str>)> {
        let mut groups: Vec<(Mode, Vec<&str>)> = Vec::new();
        for (name, mode) in &self.scripts {
            let name = name.strip_suffix(".sql").unwrap_or(name);
            match groups.iter_mut().find(|(other, _)| other == mode) {
                Some((_, names)) => names.push(name),
                None => groups.push((*mode, vec![name])),
            }
        }
        groups
    }

    /// The allocation as [`Allocation::from_str`] reads it: `pay.sql=ser,report=rr ro,*=rc`.
    pub fn spec(&self) -> String {
        let scripts = self.scripts.iter().map(|(name, mode)| format!("{name}={},", short(*mode)));
        format!("{}{REST}={}", scripts.collect::<String>(), short(self.rest))
    }

    /// The weakest and the strongest level of any script.
    pub fn range(&self) -> (Level, Level) {
        let levels = || self.scripts.iter().map(|(_, mode)| mode.level).chain([self.rest.level]);
        (levels().min().unwrap_or(self.rest.level), levels().max().unwrap_or(self.rest.level))
    }

    /// The names of scripts that none of these has.
    pub fn unknown<'a>(&'a self, scripts: &[&str]) -> Vec<&'a str> {
        let is_unknown = |name: &str| !scripts.iter().any(|script| Allocation::is_called(script, name));
        self.scripts.iter().map(|(name, _)| name.as_str()).filter(|name| is_unknown(name)).collect()
    }
}

/// The modes as [`mode`] reads them.
fn short(mode: Mode) -> String {
    let read_only = if mode.read_only { " ro" } else { "" };
    let deferrable = if mode.deferrable { " deferrable" } else { "" };
    format!("{}{read_only}{deferrable}", mode.level.short())
}

/// The modes of `ser`, `rr ro` or `ser ro deferrable`.
fn mode(text: &str) -> Result<Mode, AllocationError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let deferrable = words.contains(&DEFERRABLE);
    let read_only = words.contains(&READ_ONLY);
    let level: Vec<&str> = words.into_iter().filter(|word| ![DEFERRABLE, READ_ONLY].contains(word)).collect();
    let level: Level = level.join(" ").parse().map_err(AllocationError::Level)?;
    if deferrable && !(read_only && level == Level::Serializable) {
        return Err(AllocationError::Deferrable(text.trim().to_owned()));
    }
    Ok(Mode { level, read_only, deferrable })
}

impl FromStr for Allocation {
    type Err = AllocationError;

    /// Reads a level for all scripts (`rr`), or one for each: `pay.sql=ser,report=rr ro,*=rc`.
    fn from_str(text: &str) -> Result<Allocation, AllocationError> {
        if !text.contains('=') {
            return Ok(Allocation { rest: mode(text)?, scripts: Vec::new() });
        }
        let (mut rest, mut scripts) = (None, Vec::new());
        for part in text.split(',') {
            let Some((name, level)) = part.split_once('=') else {
                return Err(AllocationError::Form(part.trim().to_owned()));
            };
            let (name, mode) = (name.trim(), mode(level)?);
            let known = scripts.iter().any(|(other, _)| other == name) || name == REST && rest.is_some();
            match name {
                "" => return Err(AllocationError::Form(part.trim().to_owned())),
                _ if known => return Err(AllocationError::Twice(name.to_owned())),
                REST => rest = Some(mode),
                _ => scripts.push((name.to_owned(), mode)),
            }
        }
        Ok(Allocation { rest: rest.ok_or(AllocationError::NoRest)?, scripts })
    }
}

impl fmt::Display for Allocation {
    /// Writes "pay, close: ser; else rc", short enough for a column; one for all by its whole name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scripts.is_empty() {
            return self.rest.fmt(f);
        }
        let groups = self.groups().into_iter();
        let mut groups: Vec<String> =
            groups.map(|(mode, names)| format!("{}: {}", names.join(", "), short(mode))).collect();
        groups.push(format!("else {}", short(self.rest)));
        f.pad(&groups.join("; "))
    }
}

impl fmt::Display for AllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocationError::Form(part) => {
                write!(f, "\"{part}\" isn't SCRIPT=LEVEL; use a form such as 'pay.sql=ser,*=rc'")
            }
            AllocationError::Twice(name) => write!(f, "{name} has two levels; leave one out"),
            AllocationError::NoRest => {
                f.write_str("the level of the other scripts is missing; add it as in 'pay.sql=ser,*=rc'")
            }
            AllocationError::Level(error) => error.fmt(f),
            AllocationError::Deferrable(text) => {
                write!(
                    f,
                    "\"{text}\": DEFERRABLE matters to serializable read only transactions; use 'ser ro deferrable'"
                )
            }
        }
    }
}

impl std::error::Error for AllocationError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Allocation, String> {
        text.parse().map_err(|error: AllocationError| error.to_string())
    }

    #[test]
    fn scripts_are_named_by_their_files() {
        let mixed = read("pay.sql=ser, report = rr ro,*=rc").unwrap();
        let levels = ["sql/pay.sql", "pay.sql", "report.sql", "other.sql"].map(|script| mixed.of(script));
        let [ser, rc] = [Level::Serializable, Level::ReadCommitted].map(Mode::of);
        let report = Mode { read_only: true, ..Mode::of(Level::RepeatableRead) };
        assert_eq!(levels, [ser, ser, report, rc]);
        assert_eq!(mixed.unknown(&["sql/pay.sql", "b.sql"]), ["report"]);
        assert_eq!(mixed.level(), None);
        assert_eq!(mixed.to_string(), "pay: ser; report: rr ro; else rc");
        assert_eq!(
            mixed.said(),
            "serializable for pay, repeatable read read only for report and read committed for the others"
        );
        assert_eq!(
            read("pay=ser,close.sql=ser,*=rc").unwrap().said(),
            "serializable for pay and close and read committed for the others"
        );
    }

    #[test]
    fn one_level_for_all_is_an_allocation() {
        assert_eq!(read("ser").unwrap().level(), Some(Level::Serializable));
        assert_eq!(read("repeatable read").unwrap().to_string(), "repeatable read");
        assert_eq!(read("rr ro").unwrap().level(), None);
        assert!(read("a=ser ro deferrable,*=rc").is_ok());
    }

    #[test]
    fn an_allocation_is_written_as_it_is_read() {
        let text = "pay.sql=ser,report=rr ro,close=ser ro deferrable,*=rc";
        let mixed = read(text).unwrap();
        assert_eq!(mixed.spec(), text);
        assert_eq!(serde_json::to_value(&mixed).unwrap(), text);
        assert_eq!(serde_json::from_value::<Allocation>(text.into()).unwrap(), mixed);
        assert!(serde_json::from_value::<Allocation>("pay=ser".into()).is_err());
    }

    #[test]
    fn an_allocation_has_a_weakest_and_a_strongest_level() {
        let mixed = read("pay=ser,*=rc").unwrap();
        assert_eq!(mixed.range(), (Level::ReadCommitted, Level::Serializable));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        for (text, said) in [
            ("a.sql=ser", "the level of the other scripts is missing; add it as in 'pay.sql=ser,*=rc'"),
            ("a=ser,rc", "\"rc\" isn't SCRIPT=LEVEL; use a form such as 'pay.sql=ser,*=rc'"),
            ("a=ser,a=rc,*=rc", "a has two levels; leave one out"),
            ("*=ser,*=rc", "* has two levels; leave one out"),
        ] {
            assert_eq!(read(text).unwrap_err(), said);
        }
        assert!(read("a=serial,*=rc").unwrap_err().starts_with("unknown isolation level \"serial\""));
        assert!(read("a=rr deferrable,*=rc").unwrap_err().contains("'ser ro deferrable'"));
    }
}
