//! The options of the caller: which PostgreSQL to run, and its settings.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The PostgreSQL to run, and its settings.
///
/// By default, the newest installed server is used, or one is fetched, and PostgreSQL's own
/// settings are kept.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// The folder that contains `initdb` and `postgres` (`--server-bin`).
    pub bin: Option<PathBuf>,
    /// The major version to fetch, even if a server is installed (`--server-version`); excludes
    /// `bin`.
    pub version: Option<MajorVersion>,
    /// Settings as name and value (`--server-setting`), in the order given; the last one of a name
    /// is used.
    pub settings: Vec<(String, String)>,
    /// The number of standbys, at most 8, which follow it by streaming replication
    /// ([`crate::Server::start_standbys`]).
    pub standbys: usize,
    /// Clients reach the server and its standbys by relays, which [`crate::Server::hold_up`] and
    /// [`crate::Server::cut`] act on. Each round trip takes some 20 to 50 µs longer.
    pub relayed: bool,
}

/// A major version of PostgreSQL that can be fetched, 14 to 19; of the last one there may be no build yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MajorVersion(u8);

impl MajorVersion {
    /// The oldest version supported.
    pub const OLDEST: Self = Self(14);
    /// The newest version supported.
    pub const NEWEST: Self = Self(19);
    /// The version that is fetched when no server is installed: the newest of which there are builds.
    pub const FETCHED: Self = Self(18);

    /// The version as a number, 14 to 19.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for MajorVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A text that isn't a supported major version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not a PostgreSQL version that can be fetched: give a major version from {} to {}",
    MajorVersion::OLDEST,
    MajorVersion::NEWEST
)]
pub struct MajorVersionError {
    text: String,
}

impl FromStr for MajorVersion {
    type Err = MajorVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse()
            .ok()
            .map(Self)
            .filter(|version| digits_only && (Self::OLDEST..=Self::NEWEST).contains(version))
            .ok_or_else(|| MajorVersionError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_range_are_read() {
        for number in 14..=19 {
            assert_eq!(number.to_string().parse(), Ok(MajorVersion(number)));
        }
    }

    #[test]
    fn other_versions_are_refused_with_the_range() {
        for text in ["", "13", "20", "255", "256", "-15", "+15", "15.1", "x"] {
            let message = text.parse::<MajorVersion>().expect_err(text).to_string();
            assert!(message.contains("from 14 to 19") && message.contains(text), "{message}");
        }
    }
}
