//! The four levels of the SQL standard, their names, and the levels reported by servers.
//!
//! The anomalies that a level proscribes, and how products set and report it, are elsewhere.

mod json;

use std::fmt;
use std::str::FromStr;

/// A requested isolation level.
///
/// Ordered from the weakest to the strongest. Source: SQL:2016 part 2, §4.41.4; PostgreSQL manual,
/// "Transaction Isolation".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `READ UNCOMMITTED`. PostgreSQL runs it as read committed, although it reports the requested
    /// name.
    ReadUncommitted,
    /// `READ COMMITTED`: each statement sees what was committed before it started.
    ReadCommitted,
    /// `REPEATABLE READ`. In PostgreSQL this is snapshot isolation.
    RepeatableRead,
    /// `SERIALIZABLE`: the outcome equals that of some serial order.
    Serializable,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Level; 4] =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

    /// The standard's name in lower case, as `SHOW transaction_isolation` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "read uncommitted",
            Level::ReadCommitted => "read committed",
            Level::RepeatableRead => "repeatable read",
            Level::Serializable => "serializable",
        }
    }

    /// The short name that `--levels` takes: `ru`, `rc`, `rr` or `ser`.
    pub const fn short(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "ru",
            Level::ReadCommitted => "rc",
            Level::RepeatableRead => "rr",
            Level::Serializable => "ser",
        }
    }

    /// The name in upper case, as used in SQL commands.
    pub fn sql(self) -> String {
        self.name().to_uppercase()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text isn't the name of an isolation level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel(String);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Level::ALL.into_iter().map(Level::name);
        let meant = isobench_suggest::did_you_mean(&self.0, names);
        write!(f, "unknown isolation level \"{}\"{meant}; use one of", self.0)?;
        for (index, level) in Level::ALL.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {} ({})", level.short(), level.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    /// Accepts the standard's name (words separated by blanks, `-` or `_`, in any case) or the
    /// short name.
    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let words = text.trim().to_lowercase().replace(['-', '_'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        Level::ALL
            .into_iter()
            .find(|level| words == level.name() || words == level.short())
            .ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

/// The level that a server reports inside a transaction, which doesn't prove that it is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectiveLevel {
    /// One of the standard's levels.
    Standard(Level),
    /// A name outside the standard, for example `snapshot`.
    Other(String),
    /// The server doesn't report a level.
    Unknown,
}

impl EffectiveLevel {
    /// Parses the server's answer; an empty answer is [`EffectiveLevel::Unknown`].
    pub fn from_setting(answer: &str) -> Self {
        if answer.trim().is_empty() {
            return EffectiveLevel::Unknown;
        }
        answer
            .parse()
            .map_or_else(|_| EffectiveLevel::Other(answer.trim().to_lowercase()), EffectiveLevel::Standard)
    }

    /// True if the server runs another level than `requested`, or doesn't report one.
    pub fn differs_from(&self, requested: Level) -> bool {
        *self != EffectiveLevel::Standard(requested)
    }
}

impl fmt::Display for EffectiveLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectiveLevel::Standard(level) => f.pad(level.name()),
            EffectiveLevel::Other(name) => f.pad(name),
            EffectiveLevel::Unknown => f.pad("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_short_names_are_understood() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            assert_eq!(level.short().parse(), Ok(level));
            assert_eq!(level.sql().replace(' ', "_").parse(), Ok(level));
        }
        assert_eq!(" Repeatable-Read ".parse(), Ok(Level::RepeatableRead));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = "snapshot".parse::<Level>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown isolation level \"snapshot\"; use one of ru (read uncommitted), rc (read committed), \
             rr (repeatable read), ser (serializable)"
        );
    }

    #[test]
    fn a_server_may_run_another_level() {
        let raised = EffectiveLevel::from_setting("serializable");
        assert!(raised.differs_from(Level::ReadCommitted));
        assert!(!raised.differs_from(Level::Serializable));
        assert_eq!(EffectiveLevel::from_setting("SNAPSHOT").to_string(), "snapshot");
        assert!(EffectiveLevel::from_setting("").differs_from(Level::Serializable));
    }
}
