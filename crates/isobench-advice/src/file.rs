//! The file that `--write` writes and `--check` reads: the levels of scripts, and what could not be shown
//! when they were decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use isobench_isolation::Level;
use isobench_observation::Templates;
use isobench_robustness::{Strike, Struck};
use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::decision::Decision;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line of the file.
pub const LEVELS_START: &str = "# The lowest levels of these transactions, by isobench advise --write.";

/// Levels that were decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceFile {
    /// The version of the format.
    pub version: u32,
    /// The level of each script.
    pub levels: BTreeMap<String, Level>,
    /// Schedules that could not be shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<NotShown>,
}

/// A schedule that could not be shown, by the texts of its statements.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotShown {
    /// The read after which a transaction would be split.
    pub read: String,
    /// The write that would change what was read.
    pub overwritten_by: String,
    /// The statement on which the transaction would depend.
    pub by: String,
    /// The statement by which it would.
    pub back: String,
    /// True if it had one snapshot, as at repeatable read.
    pub snapshot: bool,
}

/// The file can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// It isn't such a file.
    Form(String),
    /// It is of another version.
    Version(u32),
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
                    "the file has version {version}, but this program knows {VERSION}; write it anew with --write"
                )
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoLevel(script) => {
                write!(f, "it has no level for script {script}; decide anew with --write, or add one")
            }
            Mismatch::NoScript(script) => {
                write!(f, "it has a level for {script}, but there is no such script")
            }
        }
    }
}

impl std::error::Error for FileError {}

impl AdviceFile {
    /// The file of a decision.
    pub fn of(advice: &Advice, templates: &Templates, decision: &Decision) -> AdviceFile {
        let text = |at: &String| {
            let named = templates.statements.iter().find(|statement| statement.at == *at);
            named.map(|statement| statement.text.clone())
        };
        let not_shown: BTreeSet<NotShown> = decision
            .struck
            .iter()
            .filter_map(|one| {
                Some(NotShown {
                    read: text(&one.read)?,
                    overwritten_by: text(&one.overwritten_by)?,
                    by: text(&one.by)?,
                    back: text(&one.back)?,
                    snapshot: one.snapshot,
                })
            })
            .collect();
        AdviceFile {
            version: VERSION,
            levels: advice.transactions.iter().map(|one| (one.script.clone(), one.level)).collect(),
            not_shown: not_shown.into_iter().collect(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It isn't such a file, or of another version.
    pub fn read(text: &str) -> Result<AdviceFile, FileError> {
        let file: AdviceFile = toml::from_str(text).map_err(|error| FileError::Form(error.to_string()))?;
        if file.version == VERSION { Ok(file) } else { Err(FileError::Version(file.version)) }
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

    /// What was struck, of statements that still have the same text.
    pub fn struck(&self, templates: &Templates) -> Struck {
        // A text may stand in several places.
        let named = |text: &String| {
            let all = templates.statements.iter().filter(move |statement| statement.text == *text);
            all.map(|statement| statement.at.clone()).collect::<Vec<_>>()
        };
        let mut struck = Struck::new();
        for one in &self.not_shown {
            let [reads, writes, bys, backs] = [&one.read, &one.overwritten_by, &one.by, &one.back].map(named);
            for read in &reads {
                for overwritten_by in &writes {
                    for by in &bys {
                        struck.extend(backs.iter().map(|back| Strike {
                            read: read.clone(),
                            overwritten_by: overwritten_by.clone(),
                            by: by.clone(),
                            back: back.clone(),
                            snapshot: one.snapshot,
                        }));
                    }
                }
            }
        }
        struck
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
            not_shown: vec![NotShown {
                read: "SELECT 1".to_owned(),
                overwritten_by: "UPDATE t".to_owned(),
                by: "SELECT 2".to_owned(),
                back: "UPDATE u".to_owned(),
                snapshot: true,
            }],
        };
        assert_eq!(AdviceFile::read(&file.text()), Ok(file.clone()));
        assert_eq!(file.levels(&["pay.sql"]), Ok(vec![Level::RepeatableRead]));
        assert_eq!(file.levels(&["pay.sql", "new.sql"]), Err(Mismatch::NoLevel("new.sql".to_owned())));
        assert_eq!(file.levels(&[]), Err(Mismatch::NoScript("pay.sql".to_owned())));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(AdviceFile::read("levels = 1"), Err(FileError::Form(_))));
        assert_eq!(AdviceFile::read("version = 9\nlevels = {}"), Err(FileError::Version(9)));
        assert!(matches!(AdviceFile::read("version = 1\nlevels = {}\nmore = 1"), Err(FileError::Form(_))));
    }
}
