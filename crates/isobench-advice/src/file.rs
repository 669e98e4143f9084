//! The file that `--write` writes and `--check` reads: the levels of scripts, all of them proved.

use std::collections::BTreeMap;
use std::fmt;

use isobench_isolation::Level;
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Transaction};

/// The version of the format.
const VERSION: u32 = 2;

/// The first line of the file.
pub const LEVELS_START: &str =
    "# The lowest levels that are proved for these transactions, by isobench advise --write.";

/// Levels that were decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceFile {
    /// The version of the format.
    pub version: u32,
    /// The level of each script.
    pub levels: BTreeMap<String, Level>,
}

/// The file can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// It isn't such a file.
    Form(String),
    /// It is of another version.
    Version(i64),
}

/// A script without a level, or a level without a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The file has no level for a script.
    NoLevel(String),
    /// No script has this name.
    NoScript(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Form(why) => write!(f, "{}", why.trim_end()),
            FileError::Version(version) => {
                write!(
                    f,
                    "the file has version {version}, but this program knows {VERSION}, which has only levels that \
                     are proved; write it again with --write"
                )
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoLevel(script) => {
                write!(f, "it has no level for script {script}; write it again with --write, or add one")
            }
            Mismatch::NoScript(script) => {
                write!(f, "it has a level for {script}, but there is no such script")
            }
        }
    }
}

impl std::error::Error for FileError {}

impl AdviceFile {
    /// The file of an advice.
    ///
    /// # Errors
    /// The first script for which no level is proved: then there is no file.
    pub fn of(advice: &Advice) -> Result<AdviceFile, &str> {
        let level = |one: &Transaction| Some((one.script.clone(), one.level?));
        if let Some(open) = advice.transactions.iter().find(|one| one.level.is_none()) {
            return Err(&open.script);
        }
        let levels = advice.transactions.iter().filter_map(level).collect();
        Ok(AdviceFile { version: VERSION, levels })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It isn't such a file, or of another version.
    pub fn read(text: &str) -> Result<AdviceFile, FileError> {
        let form = |error: toml::de::Error| FileError::Form(error.to_string());
        let table: toml::Table = toml::from_str(text).map_err(form)?;
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(version) if version != i64::from(VERSION) => Err(FileError::Version(version)),
            _ => toml::from_str(text).map_err(form),
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        // Strings, numbers and tables are all that it has.
        let body = toml::to_string(self).unwrap_or_default();
        format!("{LEVELS_START}\n{body}")
    }

    /// The levels of scripts, in their order.
    ///
    /// # Errors
    /// The file and the scripts don't have the same names.
    pub fn levels(&self, scripts: &[&str]) -> Result<Vec<Level>, Mismatch> {
        if let Some(unknown) = self.levels.keys().find(|name| !scripts.contains(&name.as_str())) {
            return Err(Mismatch::NoScript(unknown.clone()));
        }
        let level = |script: &&str| {
            self.levels.get(*script).copied().ok_or_else(|| Mismatch::NoLevel((*script).to_owned()))
        };
        scripts.iter().map(level).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let file = AdviceFile {
            version: VERSION,
            levels: BTreeMap::from([("pay.sql".to_owned(), Level::RepeatableRead)]),
        };
        assert_eq!(AdviceFile::read(&file.text()), Ok(file.clone()));
        assert_eq!(file.levels(&["pay.sql"]), Ok(vec![Level::RepeatableRead]));
        assert_eq!(file.levels(&["pay.sql", "new.sql"]), Err(Mismatch::NoLevel("new.sql".to_owned())));
        assert_eq!(file.levels(&[]), Err(Mismatch::NoScript("pay.sql".to_owned())));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(AdviceFile::read("levels = 1"), Err(FileError::Form(_))));
        assert_eq!(AdviceFile::read("version = 1\nlevels = {}\n[[not_shown]]"), Err(FileError::Version(1)));
        assert!(matches!(AdviceFile::read("version = 2\nlevels = {}\nmore = 1"), Err(FileError::Form(_))));
    }
}
