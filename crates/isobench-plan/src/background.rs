//! What goes on at the server beside the clients.
//!
//! Not here: doing it (`isobench-comparison`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::WrongValue;
use crate::values::is_text;

/// What another session does on the server while the clients are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Background {
    /// Nothing.
    None,
    /// A transaction with a snapshot from before the measured part stays open, at the cell's level, at
    /// least repeatable read. Nothing newer can be vacuumed, and serializable remembers everything.
    OldSnapshot,
    /// A transaction that has written stays open, at the cell's level.
    LongWriter,
    /// `VACUUM (ANALYZE)` of all tables, again and again.
    Vacuum,
    /// `CHECKPOINT`, again and again.
    Checkpoint,
    /// All rows of all tables are read in one snapshot, as `pg_dump` does, again and again.
    Dump,
}

impl Background {
    /// All of them.
    pub const ALL: [Background; 6] = [
        Background::None,
        Background::OldSnapshot,
        Background::LongWriter,
        Background::Vacuum,
        Background::Checkpoint,
        Background::Dump,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Background::None => "none",
            Background::OldSnapshot => "old-snapshot",
            Background::LongWriter => "long-writer",
            Background::Vacuum => "vacuum",
            Background::Checkpoint => "checkpoint",
            Background::Dump => "dump",
        }
    }
}

impl FromStr for Background {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Background, WrongValue> {
        Background::ALL.into_iter().find(|one| one.name() == text.trim()).ok_or_else(|| {
            let names = Background::ALL.map(Background::name).join(", ");
            WrongValue(format!("there is no background work \"{text}\"; there are {names}"))
        })
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

is_text!(Background);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for one in Background::ALL {
            assert_eq!(one.to_string().parse::<Background>().unwrap(), one);
        }
        let message = "reindex".parse::<Background>().unwrap_err().to_string();
        assert!(message.contains("old-snapshot, long-writer, vacuum"), "{message}");
    }
}
